internal import Connect

/// Sends requests to a server's reflection service and returns the answers.
struct ReflectionExchange: Sendable {
  typealias Request = Grpc_Reflection_V1_ServerReflectionRequest
  typealias Response = Grpc_Reflection_V1_ServerReflectionResponse

  /// The maximum number of requests in one gRPC stream. All are sent before an answer is read, so they must fit into
  /// the stream's flow-control window. Proxies for gRPC-Web, and servers of HTTP/1.1, may accept only one.
  private static let mostRequests = 64

  let client: ProtocolClient
  let options: CallOptions
  let version = KnownVersion()

  /// - Parameter take: Called with the number of each request, in order, and its answer.
  /// - Throws: ``ConnectError``; with `unimplemented` if the server has no version of the service. Also what `take`
  ///   throws.
  func ask(_ requests: [Request], _ take: (_ number: Int, Response) throws -> Void) async throws {
    let most = self.client.config.networkProtocol == .grpc ? Self.mostRequests : 1
    var start = 0
    while start < requests.count {
      let end = min(start + most, requests.count)
      try await self.ask(requests, start..<end, take)
      start = end
    }
  }

  private func ask(
    _ requests: [Request],
    _ range: Range<Int>,
    _ take: (_ number: Int, Response) throws -> Void
  ) async throws {
    if let version = self.version.value {
      return try await self.ask(requests[range], version, take)
    }
    for version in ReflectionVersion.allCases {
      var isAnswered = false
      do {
        try await self.ask(requests[range], version) { number, answer in
          isAnswered = true
          try take(number, answer)
        }
        self.version.found(version)
        return
      } catch let error as ConnectError where error.code == .unimplemented && !isAnswered {
        continue
      }
    }
    throw ConnectError(
      code: .unimplemented,
      message: "\(self.client.config.host) has no server reflection (grpc.reflection.v1 or v1alpha): "
        + "switch it on in the server, or use a descriptor set or proto files"
    )
  }

  private func ask(
    _ requests: ArraySlice<Request>,
    _ version: ReflectionVersion,
    _ take: (_ number: Int, Response) throws -> Void
  ) async throws {
    let stream = self.client.bidirectionalStream(version.method, options: self.options)
    do {
      for request in requests { try await stream.send(request) }
    } catch {
      // The stream's results include its end, which is a better error.
    }
    stream.finish()
    var number = requests.startIndex
    for try await answer in stream.messages {
      guard number < requests.endIndex else { throw ConnectError.unusable("more answers than requests") }
      try take(number, answer)
      number += 1
    }
    guard number == requests.endIndex else {
      throw ConnectError.unusable("\(number - requests.startIndex) answers to \(requests.count) requests")
    }
  }
}

extension ConnectError {
  /// An invalid answer of the server.
  static func unusable(_ what: String) -> ConnectError {
    ConnectError(code: .internalError, message: "the server's reflection gave \(what)")
  }

  init(_ response: Grpc_Reflection_V1_ErrorResponse, for subject: String) {
    let code = Code(rawValue: Int(response.errorCode)) ?? .unknown
    let text = response.errorMessage.isEmpty ? "" : ": \(ProtoText.comment(response.errorMessage))"
    self.init(
      code: code == .ok ? .unknown : code,
      message: "the server's reflection has no answer for \(subject)\(text)"
    )
  }
}
