public import Connect
public import NIOCore

/// What a hook for the head of a request or response can do.
public enum WireHeadVerb<Head: Sendable>: Sendable {
  /// Pass a head on: the one given, or another.
  case proceed(Head)
  /// Fail the exchange.
  case fail(ConnectError)
}

extension Proceed {
  /// Passes a head on: the one given, or another in its place.
  public func callAsFunction<Head>(_ head: Head) where Verb == WireHeadVerb<Head> {
    self.send(.proceed(head))
  }

  /// Fails the exchange. Interceptors before this one see the error; the others see the end alone.
  public func fail<Head>(_ error: ConnectError) where Verb == WireHeadVerb<Head> {
    self.send(.fail(error))
  }
}

/// What a hook for a chunk can do.
public enum WireChunkVerb: Sendable {
  /// Pass chunks on in place of the chunk; none drops it.
  case send([ByteBuffer])
  /// Fail the exchange.
  case fail(ConnectError)
}

extension Proceed where Verb == WireChunkVerb {
  /// Passes a chunk on: the one given, or another in its place.
  public func callAsFunction(_ bytes: ByteBuffer) { self.send(.send([bytes])) }

  /// Passes any number of chunks on in place of the chunk. Empty ones are left out.
  public func send(_ chunks: [ByteBuffer]) { self.send(.send(chunks)) }

  /// Passes nothing on.
  public func drop() { self.send(.send([])) }

  /// Fails the exchange. Interceptors before this one see the error; the others see the end alone.
  public func fail(_ error: ConnectError) { self.send(.fail(error)) }
}

/// What a hook for the end of a body can do.
public enum WireEndVerb: Sendable {
  /// Pass the end on, with trailers, behind further chunks.
  case proceed(Headers, after: [ByteBuffer])
  /// Fail the exchange.
  case fail(ConnectError)
}

extension Proceed where Verb == WireEndVerb {
  /// Passes the end on.
  ///
  /// - Parameters:
  ///   - trailers: The trailers given, or others.
  ///   - chunks: Further chunks of the body, which go in front of the end.
  public func callAsFunction(_ trailers: Headers, after chunks: [ByteBuffer] = []) {
    self.send(.proceed(trailers, after: chunks))
  }

  /// Fails the exchange. Interceptors before this one see the error; the others see the end alone.
  public func fail(_ error: ConnectError) { self.send(.fail(error)) }
}

extension Proceed where Verb == HTTPStreamFailure {
  /// Passes a failure on: the one given, or another in its place.
  public func callAsFunction(_ failure: HTTPStreamFailure) { self.send(failure) }
}
