import ConnectChannels

extension EndpointAddress {
  /// - Parameter address: The text of an IP address.
  static func ip(_ address: String, port: Int) -> EndpointAddress {
    .ip(IPAddress(address)!, port: port)
  }
}
