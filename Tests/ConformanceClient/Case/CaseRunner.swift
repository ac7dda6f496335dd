internal import ConformanceMessages
internal import Connect

/// Makes the calls that the runner asks for.
struct CaseRunner: Sendable {
  let transports: TransportPool
  let options: Options
  let lateReports = LateReports()

  /// What came of `request`. A call that does not end in time is reported as an error and left alone; a call that breaks a
  /// promise of the library's is reported as an error, too.
  func response(to request: CompatRequest) async -> CompatResponse {
    let outcome = OneShot<Result<ResponseResult, any Error>>()
    let call = Task {
      do {
        outcome.put(.success(try await self.result(of: request)))
      } catch {
        outcome.put(.failure(error))
      }
    }
    let limit = self.options.caseTimeout
    let watch = Task {
      try await Task.sleep(for: limit)
      if outcome.put(.failure(CaseFailure("the call did not end within \(limit)"))) { call.cancel() }
    }
    defer { watch.cancel() }
    var response = CompatResponse()
    response.testName = request.testName
    switch await outcome.value() {
    case .success(let result): response.response = result
    case .failure(let error): response.error.message = "\(error)"
    }
    return response
  }

  private func result(of request: CompatRequest) async throws -> ResponseResult {
    let config = try ClientConfig.make(for: request)
    let settings = try TransportSettings(request, usesALPN: self.options.usesALPN)
    let lateReports = self.lateReports
    let invariants = Invariants { lateReports.add($0, of: request.testName) }
    let transport = self.transports.acquire(settings)
    defer { self.transports.release(settings) }
    var httpClient: any HTTPClientInterface = transport
    if settings.letsServerChoose {
      httpClient = VersionCheckingTransport(
        transport: transport,
        expected: try HTTPConnectionInfo.Version(request),
        invariants: invariants
      )
    }
    let client = ProtocolClient(httpClient: httpClient, config: config)
    let call = CaseCall(
      client: client,
      request: request,
      usesCallbacks: self.options.usesCallbacks,
      invariants
    )
    let result = try await self.make(call)
    try invariants.close()
    return result
  }

  private func make(_ call: CaseCall) async throws -> ResponseResult {
    let request = call.request
    guard !request.hasService || request.service == ConformanceMethods.unary.info.service else {
      throw CaseFailure("there is no service '\(request.service)'")
    }
    switch (request.method, request.streamType) {
    case ("Unary", .unary), ("", .unary): return try await call.unary(ConformanceMethods.unary)
    case ("IdempotentUnary", .unary): return try await call.unary(ConformanceMethods.idempotentUnary)
    case ("Unimplemented", .unary): return try await call.unary(ConformanceMethods.unimplemented)
    case ("ServerStream", .serverStream), ("", .serverStream):
      return try await call.serverStream(ConformanceMethods.serverStream)
    case ("ClientStream", .clientStream), ("", .clientStream):
      return try await call.clientStream(ConformanceMethods.clientStream)
    case ("BidiStream", .halfDuplexBidiStream), ("", .halfDuplexBidiStream):
      return try await call.bidiStream(ConformanceMethods.bidiStream, isFullDuplex: false)
    case ("BidiStream", .fullDuplexBidiStream), ("", .fullDuplexBidiStream):
      return try await call.bidiStream(ConformanceMethods.bidiStream, isFullDuplex: true)
    default:
      throw CaseFailure("there is no method '\(request.method)' of stream type \(request.streamType)")
    }
  }
}
