import Foundation
import SwiftProtobuf
import SwiftProtobufPluginLibrary

/// An error in a proto file, for protoc to print.
struct GeneratorError: Error, CustomStringConvertible {
  let file: String
  /// The line, from 1; nil if protoc did not say.
  let line: Int?
  let problem: String

  init(file: String, line: Int? = nil, _ problem: String) {
    self.file = file
    self.line = line
    self.problem = problem
  }

  /// `eliza.proto:12: message`, in protoc's own format.
  var description: String {
    "\(self.file):\(self.line.map { "\($0):" } ?? "") \(self.problem)"
  }
}

extension Google_Protobuf_FileDescriptorProto {
  /// The location at `path`: field numbers and indices, starting at the file's descriptor.
  func location(of path: [Int32]) -> Google_Protobuf_SourceCodeInfo.Location? {
    self.sourceCodeInfo.location.first { $0.path == path }
  }
}

extension Google_Protobuf_SourceCodeInfo.Location {
  /// The first line of the location; from 1.
  var line: Int? { self.span.first.map { Int($0) + 1 } }
}
