internal import ConformanceMessages
internal import Foundation
internal import LoopbackServer
internal import SwiftProtobuf
internal import TestSupport

typealias CompatRequest = Connectrpc_Conformance_V1_ClientCompatRequest
typealias CompatResponse = Connectrpc_Conformance_V1_ClientCompatResponse

/// The built ConnectConformanceClient as a process, started in the same way as by the suite's runner.
struct ClientUnderTest {
  let process: ChildProcess

  init(arguments: [String] = []) throws {
    self.process = try ChildProcess(product: "ConnectConformanceClient", arguments: arguments)
  }

  /// Starts the client, which makes all these calls and ends.
  ///
  /// - Returns: The client's results, by the case's name.
  /// - Throws: ``LoopbackServerError`` if the client answers a case twice or never, or does not exit with 0.
  static func run(_ requests: [CompatRequest], arguments: [String] = []) async throws -> [String:
    CompatResponse]
  {
    let client = try ClientUnderTest(arguments: arguments)
    async let output = client.process.readAll()
    var input = Data()
    for request in requests { input += try Self.frame(request) }
    try await client.process.write(input)
    try client.process.closeInput()
    let responses = try Self.responses(in: await output)
    let status = try await client.process.exitStatus()
    guard status == 0 else {
      throw LoopbackServerError("the client ended with \(status): \(client.process.errorOutput)")
    }
    let byName = Dictionary(grouping: responses, by: \.testName)
    if let name = byName.first(where: { $0.value.count > 1 })?.key {
      throw LoopbackServerError("\(name) was answered twice")
    }
    if let missing = requests.first(where: { byName[$0.testName] == nil }) {
      throw LoopbackServerError("\(missing.testName) was not answered")
    }
    return byName.compactMapValues(\.first)
  }

  /// A message in the format of the pipe.
  static func frame(_ message: some SwiftProtobuf.Message) throws -> Data {
    let bytes: Data = try message.serializedBytes()
    return withUnsafeBytes(of: UInt32(bytes.count).bigEndian) { Data($0) } + bytes
  }

  /// All messages in the client's output.
  static func responses(in output: Data) throws -> [CompatResponse] {
    var rest = output[...]
    var responses: [CompatResponse] = []
    while !rest.isEmpty {
      guard rest.count >= 4 else { throw LoopbackServerError("half a length at the end of the output") }
      let length = rest.prefix(4).reduce(0) { $0 << 8 | Int($1) }
      rest = rest.dropFirst(4)
      guard rest.count >= length else { throw LoopbackServerError("half a message at the end of the output") }
      responses.append(try CompatResponse(serializedBytes: Data(rest.prefix(length))))
      rest = rest.dropFirst(length)
    }
    return responses
  }
}
