package import Foundation
import SwiftProtobuf
package import SwiftProtobufPluginLibrary

/// Runs a generator as a protoc plugin: a request on standard input, a response on standard output.
package enum Plugin {
  /// Ends the process.
  package static func run(_ generator: some CodeGenerator) -> Never {
    do {
      let request = try FileHandle.standardInput.readToEnd() ?? Data()
      try FileHandle.standardOutput.write(contentsOf: self.respond(to: request, generator))
      exit(0)
    } catch {
      try? FileHandle.standardError.write(contentsOf: Data("\(error)\n".utf8))
      exit(1)
    }
  }

  /// - Throws: If the request is not a `CodeGeneratorRequest`. The response reports all other errors.
  package static func respond(to request: Data, _ generator: some CodeGenerator) throws -> Data {
    let request = try Google_Protobuf_Compiler_CodeGeneratorRequest(serializedBytes: request)
    return try self.respond(to: request, generator).serializedData()
  }

  package static func respond(
    to request: Google_Protobuf_Compiler_CodeGeneratorRequest,
    _ generator: some CodeGenerator
  ) -> Google_Protobuf_Compiler_CodeGeneratorResponse {
    do {
      try self.check(request, generator.supportedEditionRange)
      return generateCode(request: request, generator: generator)
    } catch {
      // The response needs features and editions even without files; else protoc reports their absence instead.
      var response = generateCode(
        request: Google_Protobuf_Compiler_CodeGeneratorRequest(),
        generator: generator
      )
      response.error = String(describing: error)
      return response
    }
  }

  /// Finds input on which the plugin library would trap, and editions that this generator does not support yet.
  private static func check(
    _ request: Google_Protobuf_Compiler_CodeGeneratorRequest,
    _ supported: ClosedRange<Google_Protobuf_Edition>
  ) throws {
    var known: Set<String> = []
    for file in request.protoFile {
      let editions =
        request.fileToGenerate.contains(file.name) ? supported : DescriptorSet.bundledEditionsSupport
      // SwiftProtobuf drops the number of an edition that it does not know.
      let isLater = file.syntax == "editions" && !file.hasEdition
      if isLater || file.hasEdition && !editions.contains(file.edition) {
        let latest = editions.upperBound.text
        throw GeneratorError(
          file: file.name,
          line: (file.location(of: [14]) ?? file.location(of: [12]))?.line,
          """
          \(isLater ? "its edition" : "edition \(file.edition.text)") is not supported, but editions up to \(latest) are: \
          write 'edition = "\(latest)";', or use a later version of this generator
          """
        )
      }
      if !file.hasEdition, !["", "proto2", "proto3"].contains(file.syntax) {
        let problem = "the syntax '\(file.syntax)' is not supported"
        throw GeneratorError(file: file.name, line: file.location(of: [12])?.line, problem)
      }
      for (index, dependency) in file.dependency.enumerated() where !known.contains(dependency) {
        let problem = "protoc did not send the imported file '\(dependency)'"
        throw GeneratorError(file: file.name, line: file.location(of: [3, Int32(index)])?.line, problem)
      }
      known.insert(file.name)
    }
  }
}

extension Google_Protobuf_Edition {
  /// As proto files have it, such as `2024`.
  fileprivate var text: String {
    switch self {
    case .edition2023: "2023"
    case .edition2024: "2024"
    case .edition2026: "2026"
    case .unstable: "UNSTABLE"
    default: "\(self)"
    }
  }
}
