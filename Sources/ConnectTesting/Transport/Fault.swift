internal import Connect

extension InMemoryTransport {
  /// A fault of a transport. Offsets count the bytes of the response's body, envelopes included. An offset after the body's
  /// end does nothing.
  public enum Fault: Sendable, Hashable {
    /// The request fails as without a connection: `unavailable`. Its channel does not see a failed attempt to connect; use
    /// ``InMemoryTransport/refuseConnections(at:)`` for that.
    case refuseConnection
    /// The server refuses the stream without having processed it (REFUSED_STREAM), so that the client may send the
    /// request again.
    case refuseStream
    /// The server speaks no HTTP/2: requests of gRPC fail with `unavailable`, and are not processed. Others are served.
    case refuseHTTP2
    /// Not even the response's headers come.
    case stallBeforeHeaders
    /// Nothing comes after this many bytes.
    case stall(afterBytes: Int)
    /// The stream is reset after this many bytes, with an HTTP/2 error code; by default INTERNAL_ERROR.
    case reset(afterBytes: Int, code: UInt32 = 2)
    /// The response ends without its trailers, wherever its protocol has them. For a unary call of the Connect
    /// protocol, which has them in the headers, this does nothing.
    case dropTrailers
    /// The body comes in pieces of this many bytes. Larger pieces that the handler sends are cut; smaller pieces are not
    /// joined.
    case splitEvery(Int)
    /// The body is cut at these offsets.
    case splitAt([Int])
  }
}

extension InMemoryTransport.Fault {
  /// How the stream fails before it has begun.
  ///
  /// - Parameter requiresHTTP2: Whether it must go over HTTP/2.
  func refusal(requiresHTTP2: Bool) -> HTTPStreamFailure? {
    switch self {
    case .refuseHTTP2: requiresHTTP2 ? .withoutHTTP2 : nil
    case .refuseConnection:
      HTTPStreamFailure(error: ConnectError(code: .unavailable, message: "connection refused, on purpose"))
    case .refuseStream:
      HTTPStreamFailure(
        error: ConnectError(code: .unavailable, message: "stream refused by the server, on purpose"),
        isUnprocessed: true
      )
    default: nil
    }
  }

  /// The first offset after `position` at which something happens.
  func nextOffset(after position: Int) -> Int? {
    switch self {
    case .stall(let offset), .reset(let offset, _): offset > position ? offset : nil
    case .splitEvery(let size) where size > 0:
      // Offsets that overflow are not cut at.
      position.addingReportingOverflow(size - position % size).overflow
        ? nil : position + (size - position % size)
    case .splitEvery: nil
    case .splitAt(let offsets): offsets.filter { $0 > position }.min()
    case .refuseConnection, .refuseStream, .refuseHTTP2, .stallBeforeHeaders, .dropTrailers: nil
    }
  }
}

extension HTTPStreamFailure {
  fileprivate static var withoutHTTP2: HTTPStreamFailure {
    var failure = HTTPStreamFailure(
      error: ConnectError(code: .unavailable, message: "the server does not speak HTTP/2, on purpose")
    )
    failure.isVersionMismatch = true
    return failure
  }
}
