import ArgumentParser

/// Where a server of this program listens: `127.0.0.1:8080`, `[::1]:8080` or `localhost:8080`. Port 0 is any free port.
struct ListenAddress: ExpressibleByArgument, CustomStringConvertible, Equatable {
  var host: String
  var port: Int

  var description: String {
    self.host.contains(":") ? "[\(self.host)]:\(self.port)" : "\(self.host):\(self.port)"
  }

  var defaultValueDescription: String { self.description }
}

extension ListenAddress {
  init?(argument: String) {
    let argument = argument.withoutBlanks
    guard let colon = argument.lastIndex(of: ":"), let port = Int(argument[argument.index(after: colon)...]),
      (0...65_535).contains(port)
    else { return nil }
    var host = argument[..<colon]
    if host.hasPrefix("["), host.hasSuffix("]") {
      host = host.dropFirst().dropLast()
    } else if host.contains(":") {
      return nil
    }
    guard !host.isEmpty else { return nil }
    self.init(host: String(host), port: port)
  }
}
