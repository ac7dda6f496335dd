internal import Connect
internal import ConnectTesting
internal import Synchronization

/// Headers that each request gets unless it has its own.
final class DefaultHeaders: Sendable {
  private let state = Mutex<Headers>(["x-client": ["example"]])

  /// The bug: what one request adds stays for the next.
  func complete(_ headers: Headers) -> Headers {
    self.state.withLock { defaults in
      for field in headers where !defaults.contains(field.name) {
        defaults.add(name: field.name, value: field.value)
      }
      return defaults
    }
  }
}

/// Gives each request the default headers.
final class SharedHeaders: Interceptor {
  private let defaults: DefaultHeaders

  init(defaults: DefaultHeaders) {
    self.defaults = defaults
  }

  func callFunction(_ method: MethodInfo) -> CallFunction {
    CallFunction(requestFunction: { [defaults] request in
      request.headers = defaults.complete(request.headers)
    })
  }
}

extension ExplorationCase {
  static let sharedHeaders = ExplorationCase(
    "SharedHeaders",
    source: "auth0/ruby-auth0#344",
    breaking: ["values stay in their call"],
    InterceptorExplorer { _ in
      let defaults = DefaultHeaders()
      return Subject { _ in SharedHeaders(defaults: defaults) }
    }
    .calls(2)
  )
}
