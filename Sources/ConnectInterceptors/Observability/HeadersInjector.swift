internal import Connect
internal import Instrumentation

/// Writes what an instrument propagates (`traceparent` and such) into the headers of a request.
struct HeadersInjector: Injector {
  func inject(_ value: String, forKey key: String, into headers: inout Headers) {
    headers[key] = [value]
  }
}
