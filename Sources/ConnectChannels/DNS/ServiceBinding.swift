/// The content of an HTTPS record (RFC 9460), as far as it says where HTTP/3 is.
package struct ServiceBinding: Hashable, Sendable {
  /// 0 means that the record is an alias of another name; else clients try the lowest first.
  package var priority: UInt16 = 0
  /// The root stands for the name of the record itself.
  package var target = DNSName.root
  /// The protocols that are offered, by their names in TLS (ALPN), besides HTTP/1.1.
  package var protocols: [String] = []
  /// Nil for the port of the origin.
  package var port: UInt16?
  /// Whether all mandatory parameters are known here (section 8).
  package var isCompatible = true
  /// Whether the content breaks the format. If so, no record that came with it counts (section 2.2).
  package var isMalformed = false

  /// Keys of parameters (section 14.3.2). Encrypted hellos (5) are not known here.
  private enum Key {
    static let mandatory: UInt16 = 0
    static let alpn: UInt16 = 1
    static let noDefaultALPN: UInt16 = 2
    static let port: UInt16 = 3
    static let known: Set<UInt16> = [1, 2, 3, 4, 6]
  }

  /// - Parameter bytes: The record's data. Names in it are not compressed.
  init(_ bytes: [UInt8]) {
    var reader = DNSReader(bytes)
    self.isMalformed = !self.read(&reader)
  }

  private mutating func read(_ reader: inout DNSReader) -> Bool {
    guard let priority = reader.uint16(), let target = reader.name() else { return false }
    self.priority = priority
    self.target = target
    // An alias has no parameters that count (section 2.4.2).
    guard priority > 0 else { return true }
    var last: UInt16?
    var keys: Set<UInt16> = []
    var mandatory: [UInt16] = []
    while reader.remaining > 0 {
      guard let key = reader.uint16(), let size = reader.uint16(), let value = reader.bytes(Int(size)) else {
        return false
      }
      // Keys rise strictly (section 2.2).
      if let last, key <= last { return false }
      last = key
      keys.insert(key)
      var content = DNSReader(Array(value))
      switch key {
      case Key.mandatory:
        while content.remaining > 0 {
          guard let needed = content.uint16(), needed != Key.mandatory,
            mandatory.last.map({ needed > $0 }) ?? true
          else { return false }
          mandatory.append(needed)
        }
        guard !mandatory.isEmpty else { return false }
      case Key.alpn:
        guard let protocols = Self.protocols(&content) else { return false }
        self.protocols = protocols
      case Key.noDefaultALPN:
        guard value.isEmpty else { return false }
      case Key.port:
        guard value.count == 2 else { return false }
        self.port = content.uint16()
      default:
        break
      }
    }
    // Without protocols there is no default to leave out (section 7.1.1).
    guard !keys.contains(Key.noDefaultALPN) || keys.contains(Key.alpn), keys.isSuperset(of: mandatory) else {
      return false
    }
    self.isCompatible = Key.known.isSuperset(of: mandatory)
    return true
  }

  private static func protocols(_ reader: inout DNSReader) -> [String]? {
    var names: [String] = []
    while reader.remaining > 0 {
      guard let size = reader.byte(), size > 0, let name = reader.bytes(Int(size)) else { return nil }
      names.append(String(decoding: name, as: UTF8.self))
    }
    return names.isEmpty ? nil : names
  }
}

extension [ServiceBinding] {
  /// The UDP port where the server of an origin offers HTTP/3; nil if the records do not say so. An alias, which makes
  /// all other records void (section 2.4.1), is not followed. Records with another target than the origin's host are left out.
  ///
  /// - Parameters:
  ///   - host: The origin's host.
  ///   - port: The origin's port.
  package func http3Port(host: String, port: Int) -> Int? {
    guard !self.contains(where: { $0.isMalformed || $0.priority == 0 }) else { return nil }
    let name = DNSName(host)
    // The root stands for the record's own name. For other ports, this name is not the host's name.
    let usable = self.filter {
      $0.isCompatible && ($0.target == name || $0.target == .root && port == 443)
    }
    let best = usable.sorted { $0.priority < $1.priority }.first { $0.protocols.contains("h3") }
    guard let best else { return nil }
    guard let own = best.port else { return port }
    return own == 0 ? nil : Int(own)
  }

  /// The name with the HTTPS records of an origin (RFC 9460, section 9.1).
  package static func name(host: String, port: Int) -> String {
    port == 443 ? host : "_\(port)._https.\(host)"
  }
}
