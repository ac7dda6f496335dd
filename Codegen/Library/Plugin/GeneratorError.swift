import Foundation
import SwiftProtobuf
import SwiftProtobufPluginLibrary

/// What is wrong with a proto file, for protoc to print.
struct GeneratorError: Error, CustomStringConvertible {
  let file: String
  /// From 1; nil if protoc did not say.
  let line: Int?
  let problem: String

  init(file: String, line: Int? = nil, _ problem: String) {
    self.file = file
    self.line = line
    self.problem = problem
  }

  /// `eliza.proto:12: what is wrong`, as protoc itself has it.
  var description: String {
    "\(self.file):\(self.line.map { "\($0):" } ?? "") \(self.problem)"
  }
}

extension Google_Protobuf_FileDescriptorProto {
  /// Where `path` leads to, by field numbers and indices from the file's descriptor on.
  func location(of path: [Int32]) -> Google_Protobuf_SourceCodeInfo.Location? {
    self.sourceCodeInfo.location.first { $0.path == path }
  }
}

extension Google_Protobuf_SourceCodeInfo.Location {
  /// Where it begins; from 1.
  var line: Int? { self.span.first.map { Int($0) + 1 } }
}
