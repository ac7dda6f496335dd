internal import Connect
internal import ConnectChannels
internal import NIOCore

/// The authorities of a SPIFFE trust domain: a JWK set, whose keys for `x509-svid` have one certificate each (the SPIFFE
/// standards "SPIFFE Trust Domain and Bundle", section 4, and "X.509-SVID", section 6). Also reads a map of trust domains to
/// such sets, `{"trust_domains": {…}}`.
struct SPIFFEBundle {
  let authorities: [Certificate]

  /// - Parameters:
  ///   - trustDomain: Whose set to take from a map.
  ///   - source: The file, for errors.
  /// - Throws: ``ConnectError`` with `failed_precondition`, which names the file and the field.
  init(_ bytes: [UInt8], trustDomain: String, source: String) throws(ConnectError) {
    let root: JSONNode
    do throws(JSONParser.Failure) {
      root = JSONNode(try JSONParser.parse(String(decoding: bytes, as: UTF8.self)))
    } catch {
      throw Self.error(source, "no JSON, line \(error.line), column \(error.column): \(error.problem)")
    }
    do throws(ServiceConfigError) {
      self.authorities = try Self.authorities(try Self.keySet(root, trustDomain))
    } catch {
      throw Self.error(source, error.path.isEmpty ? error.problem : "\(error.path): \(error.problem)")
    }
  }

  private static func keySet(_ root: JSONNode, _ trustDomain: String) throws(ServiceConfigError) -> JSONNode {
    guard let map = try root.member("trust_domains") else { return root }
    return try map.required(trustDomain)
  }

  private static func authorities(_ set: JSONNode) throws(ServiceConfigError) -> [Certificate] {
    let keys = try set.required("keys")
    var authorities: [Certificate] = []
    for key in try keys.elements() {
      // Keys of other uses, and of none, are to be ignored.
      guard try key.member("use")?.string() == "x509-svid" else { continue }
      let values = try key.required("x5c")
      let certificates = try values.elements()
      guard certificates.count == 1 else {
        throw values.error("has to have exactly one certificate, and has \(certificates.count)")
      }
      let value = certificates[0]
      guard let der = Base64.decode(try value.string()),
        let certificate = Certificate(der: Array(buffer: der))
      else { throw value.error("is no certificate (DER in base64)") }
      guard certificate.fields.vouchesForServers else {
        throw value.error(
          "'\(certificate.fields.subject)' is no authority that may sign certificates of servers"
        )
      }
      authorities.append(certificate)
    }
    guard !authorities.isEmpty else { throw keys.error("has no key whose \"use\" is \"x509-svid\"") }
    return authorities
  }

  private static func error(_ source: String, _ problem: String) -> ConnectError {
    ConnectError(code: .failedPrecondition, message: "\(source) is no SPIFFE bundle: \(problem)")
  }
}
