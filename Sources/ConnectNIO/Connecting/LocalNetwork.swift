internal import NIOCore

/// The network that this machine is in.
enum LocalNetwork {
  /// A number that changes when the machine's addresses do, loopback aside; nil if they cannot be read. The same for the life of
  /// the process only.
  static var current: Int? {
    guard let devices = try? System.enumerateDevices() else { return nil }
    var addresses = Set<String>()
    for device in devices {
      guard let address = device.address?.ipAddress, !address.hasPrefix("127."), address != "::1" else {
        continue
      }
      addresses.insert(address)
    }
    return addresses.hashValue
  }
}
