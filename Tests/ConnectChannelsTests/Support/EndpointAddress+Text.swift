import ConnectChannels

extension EndpointAddress {
  /// - Parameter address: The text of an IP address.
  static func ip(_ address: String, port: Int) -> EndpointAddress {
    .ip(IPAddress(address)!, port: port)
  }
}

/// - Parameter text: An address and a port, such as `10.0.0.1:443`.
func endpointAddress(_ text: String) -> EndpointAddress { EndpointAddress(text)! }
