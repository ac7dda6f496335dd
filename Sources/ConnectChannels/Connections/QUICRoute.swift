/// A way to a server over QUIC, as it was known when the attempt began.
struct QUICRoute: Sendable, Hashable {
  /// Where the server listens for TCP.
  let server: EndpointAddress
  /// The UDP port under which the origin's alternatives are known. The server may listen at another port.
  let port: Int
  /// Where to connect to over UDP.
  let address: EndpointAddress
  /// Names the network that the client was in; nil if it is not known.
  let network: Int?
  /// The cluster of the server; nil for the origin's own endpoints.
  var cluster: String?
}
