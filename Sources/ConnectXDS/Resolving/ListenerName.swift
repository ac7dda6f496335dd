internal import Connect
internal import ConnectChannels

/// What a target asks the control plane for (gRFC A47).
struct ListenerName: Sendable, Hashable {
  /// The name of the listener's resource.
  var resource: String
  /// What virtual hosts are chosen by: the last part of the target's name.
  var host: String

  /// - Throws: `invalid_argument` if the bootstrap does not know the authority.
  init(authority: String?, name: String, _ bootstrap: XDSBootstrap) throws(ConnectError) {
    self.host = name.split(separator: "/", omittingEmptySubsequences: false).last.map(String.init) ?? name
    let template: String
    if let authority {
      guard let known = bootstrap.authorities[authority] else {
        throw ConnectError(
          code: .invalidArgument,
          message: """
            the bootstrap has no authority "\(authority)"; add it to "authorities", or write xds:///\(name)
            """
        )
      }
      template =
        known.clientListenerTemplate
        ?? "xdstp://\(Self.encoded(authority))/\(ResourceType.listener.messageName)/%s"
    } else {
      template = bootstrap.defaultClientListenerTemplate
    }
    let replacement = template.hasPrefix("xdstp:") ? Self.encoded(name) : name
    self.resource = Self.fill(template, with: replacement)
  }

  private static func fill(_ template: String, with replacement: String) -> String {
    var filled: [UInt8] = []
    var rest = template.utf8[...]
    let placeholder = "%s".utf8
    while let first = rest.first {
      if rest.starts(with: placeholder) {
        filled += replacement.utf8
        rest = rest.dropFirst(placeholder.count)
      } else {
        filled.append(first)
        rest = rest.dropFirst()
      }
    }
    return String(decoding: filled, as: UTF8.self)
  }

  /// With percent signs for what may not stand in the path of a URI (RFC 3986, section 3.3).
  private static func encoded(_ text: String) -> String {
    var encoded: [UInt8] = []
    for byte in text.utf8 {
      switch byte {
      case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
        UInt8(ascii: "0")...UInt8(ascii: "9"):
        encoded.append(byte)
      case _ where "-._~!$&'()*+,;=:@/".utf8.contains(byte):
        encoded.append(byte)
      default:
        let digits = Array("0123456789ABCDEF".utf8)
        encoded += [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 15)]]
      }
    }
    return String(decoding: encoded, as: UTF8.self)
  }
}
