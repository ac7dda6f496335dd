internal import Connect
internal import ConnectInterceptors
internal import NIOCore
internal import Synchronization

// What the explorer's server does not do, and interceptors need to have something to do. These stand innermost.

/// Gives each response a cookie.
final class CookieServer: Interceptor {
  static let cookie = "session=explored; Path=/"

  func unaryFunction() -> UnaryFunction {
    UnaryFunction(updateResponse: { response in
      response.httpHeaders.add(name: "set-cookie", value: Self.cookie)
      return .proceed
    })
  }

  func streamFunction() -> StreamFunction {
    StreamFunction(streamResultFunction: { result, proceed in
      guard case .headers(var headers) = result else { return proceed(result) }
      headers.add(name: "set-cookie", value: Self.cookie)
      proceed(.headers(headers))
    })
  }
}

/// Gives responses an HTTP status that the protocol does not refuse, and a service may not want.
final class StatusServer: Interceptor {
  static let status = 203

  func unaryFunction() -> UnaryFunction {
    UnaryFunction(updateResponse: { response in
      if response.error == nil { response.httpStatus = Self.status }
      return .proceed
    })
  }
}

/// Keeps requests by their hashes, as a server does for a `PersistedRequestInterceptor`.
final class HashServer: Interceptor {
  private static let name = "request-hash"

  private let messages: KnownMessages
  private let witness: Witness
  private var hash: String?

  init(_ messages: KnownMessages, _ witness: Witness) {
    self.messages = messages
    self.witness = witness
  }

  func unaryFunction() -> UnaryFunction {
    UnaryFunction(
      requestFunction: { request, proceed in
        self.hash = request.headers.first(Self.name)
        guard let hash = self.hash else { return proceed(.success(request)) }
        guard request.url.query?.hasPrefix("\(Self.name)=") == true else {
          self.messages[hash] = request.message
          return proceed(.success(request))
        }
        guard let message = self.messages[hash] else {
          let error = ConnectError(code: .failedPrecondition, message: "the hash is not known")
          return proceed.answer(
            HTTPResponse(headers: [Self.name: ["unknown"]], error: error, httpStatus: 400)
          )
        }
        self.witness.saw(Self.work)
        var whole = request
        whole.message = message
        whole.url.query = nil
        proceed(.success(whole))
      },
      responseFunction: { response, proceed in
        var response = response
        if let hash = self.hash { response.headers[Self.name] = [hash] }
        proceed(response)
      }
    )
    .placed(.userIndependent)
  }

  /// What the witness of the case is told.
  static let work = "a hash goes in the place of a request"
}

/// Messages by their hashes.
final class KnownMessages: Sendable {
  private let messages = Mutex<[String: ByteBuffer]>([:])

  subscript(hash: String) -> ByteBuffer? {
    get { self.messages.withLock { $0[hash] } }
    set { self.messages.withLock { $0[hash] = newValue } }
  }
}
