internal import Connect
internal import NIOCore

/// Adds the token to the request of one attempt, perhaps later and on any thread.
struct Presentation: Sendable {
  let credentials: Credentials
  let shown: ShownCredentials
  let attempt: Int
  /// What the request sends; nil for streams.
  let message: ByteBuffer?
  /// The refusal that has caused this attempt.
  let refusal: Refusal?

  /// The error of a server that did not accept a token.
  struct Refusal {
    let generation: UInt64
    let error: ConnectError
  }

  /// Passes the request on with the headers that show the token. If the server has just refused it, ends the call with the
  /// server's error.
  func show<Message, Response>(
    _ lease: CredentialsLease,
    with request: HTTPRequest<Message>,
    _ proceed: Proceed<RequestVerb<HTTPRequest<Message>, Response>>
  ) {
    if let refusal, refusal.generation == lease.generation { return proceed(.failure(refusal.error)) }
    guard let signer = self.credentials.signer else {
      proceed(.success(self.adding(lease.headers, lease.names, of: lease, to: request)))
      return
    }
    let toSign = request.with(self.message)
    let context = self.credentials.context(within: request.context)
    let task = CallContext.$current.withValue(context) {
      Task.immediate(executorPreference: proceed.requiredTaskExecutor) {
        do {
          let headers = try await signer(toSign, lease.token)
          proceed(.success(self.adding(headers, Set(headers.map(\.name)), of: lease, to: request)))
        } catch {
          proceed(.failure(ConnectError(ofRefresh: error)))
        }
      }
    }
    self.shown.keep(task, of: self.attempt)
  }

  private func adding<Message>(
    _ headers: Headers,
    _ names: Set<String>,
    of lease: CredentialsLease,
    to request: HTTPRequest<Message>
  ) -> HTTPRequest<Message> {
    var request = request.marking(names)
    // A caller that has set one of these headers shows other credentials.
    guard !headers.contains(where: { request.headers.contains($0.name) }) else { return request }
    self.shown.show(headers, of: lease.generation, in: self.attempt)
    request.headers.append(contentsOf: headers)
    return request
  }
}
