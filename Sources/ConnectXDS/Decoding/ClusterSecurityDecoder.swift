internal import SwiftProtobuf

/// Decodes the TLS of a cluster (gRFC A29, A65).
struct ClusterSecurityDecoder {
  private typealias Common = Envoy_Extensions_TransportSockets_Tls_V3_CommonTlsContext
  private typealias Upstream = Envoy_Extensions_TransportSockets_Tls_V3_UpstreamTlsContext
  private typealias Validation = Envoy_Extensions_TransportSockets_Tls_V3_CertificateValidationContext

  private enum Roots {
    case system
    case provider(String)
  }

  let providers: [String: XDSBootstrap.CertificateProvider]

  func decode(_ socket: Envoy_Config_Core_V3_TransportSocket, at place: FieldPlace) -> ClusterSecurity? {
    let place = place.field("typed_config")
    var config: Google_Protobuf_Any?
    if case .typedConfig(let typed) = socket.configType { config = typed }
    guard let found = ExtensionMessage(config, at: place) else { return nil }
    guard found.type == Upstream.protoMessageName else {
      found.place.field("type_url").report("unsupported transport socket type")
      return nil
    }
    guard let upstream = found.parse(Upstream.self, "UpstreamTlsContext") else { return nil }
    return self.security(upstream.commonTlsContext, at: found.place.field("common_tls_context"))
  }

  private func security(_ common: Common, at place: FieldPlace) -> ClusterSecurity {
    var security = ClusterSecurity()
    switch self.roots(common, &security, at: place) {
    case .system: break
    case .provider(let name): security.roots = name
    case nil: place.report("no CA certs configured")
    }
    security.identity = self.identity(common, at: place)
    if common.hasTlsParams { place.field("tls_params").report("feature unsupported") }
    if common.hasCustomHandshaker { place.field("custom_handshaker").report("feature unsupported") }
    return security
  }

  // MARK: - Roots

  private func roots(_ common: Common, _ security: inout ClusterSecurity, at place: FieldPlace) -> Roots? {
    switch common.validationContextType {
    case .validationContext(let context):
      return self.roots(context, &security, at: place.field("validation_context"))
    case .combinedValidationContext(let combined):
      let place = place.field("combined_validation_context")
      var roots: Roots?
      if combined.hasDefaultValidationContext {
        let place = place.field("default_validation_context")
        roots = self.roots(combined.defaultValidationContext, &security, at: place)
      }
      if case .provider = roots { return roots }
      // The field of old.
      guard combined.hasValidationContextCertificateProviderInstance else { return roots }
      let name = combined.validationContextCertificateProviderInstance.instanceName
      return .provider(
        self.provider(name, at: place.field("validation_context_certificate_provider_instance"))
      )
    case .validationContextSdsSecretConfig:
      place.field("validation_context_sds_secret_config").report("feature unsupported")
      return nil
    case .validationContextCertificateProviderInstance, nil:
      return nil
    }
  }

  private func roots(_ context: Validation, _ security: inout ClusterSecurity, at place: FieldPlace) -> Roots?
  {
    for (index, matcher) in context.matchSubjectAltNames.enumerated() {
      let place = place.element("match_subject_alt_names", index)
      guard let name = Self.nameMatcher(matcher, at: place) else { continue }
      security.acceptedNames.append(name)
    }
    let unsupported = "feature unsupported"
    if !context.verifyCertificateSpki.isEmpty { place.field("verify_certificate_spki").report(unsupported) }
    if !context.verifyCertificateHash.isEmpty { place.field("verify_certificate_hash").report(unsupported) }
    if context.requireSignedCertificateTimestamp.value {
      place.field("require_signed_certificate_timestamp").report(unsupported)
    }
    if context.hasCrl { place.field("crl").report(unsupported) }
    if context.hasCustomValidatorConfig { place.field("custom_validator_config").report(unsupported) }
    if context.hasCaCertificateProviderInstance {
      let name = context.caCertificateProviderInstance.instanceName
      return .provider(self.provider(name, at: place.field("ca_certificate_provider_instance")))
    }
    return context.hasSystemRootCerts ? .system : nil
  }

  private static func nameMatcher(
    _ matcher: Envoy_Type_Matcher_V3_StringMatcher,
    at place: FieldPlace
  ) -> ClusterSecurity.NameMatcher? {
    let rule: ClusterSecurity.NameMatcher.Rule
    switch matcher.matchPattern {
    case .exact(let text): rule = .exact(text)
    case .prefix(let text): rule = .prefix(text)
    case .suffix(let text): rule = .suffix(text)
    case .contains(let text): rule = .contains(text)
    case .safeRegex(let regex):
      if let problem = RegexSyntax.problem(of: regex.regex) {
        place.report(problem)
        return nil
      }
      if matcher.ignoreCase { place.field("ignore_case").report("not supported for regex matcher") }
      rule = .regex(regex.regex)
    case nil:
      place.report("invalid string matcher")
      return nil
    }
    return .init(rule: rule, ignoresCase: matcher.ignoreCase)
  }

  // MARK: - Identity

  private func identity(_ common: Common, at place: FieldPlace) -> String? {
    if common.hasTlsCertificateProviderInstance {
      let name = common.tlsCertificateProviderInstance.instanceName
      return self.provider(name, at: place.field("tls_certificate_provider_instance"))
    }
    // The field of old.
    if common.hasTlsCertificateCertificateProviderInstance {
      let name = common.tlsCertificateCertificateProviderInstance.instanceName
      return self.provider(name, at: place.field("tls_certificate_certificate_provider_instance"))
    }
    if !common.tlsCertificates.isEmpty { place.field("tls_certificates").report("feature unsupported") }
    if !common.tlsCertificateSdsSecretConfigs.isEmpty {
      place.field("tls_certificate_sds_secret_configs").report("feature unsupported")
    }
    return nil
  }

  private func provider(_ name: String, at place: FieldPlace) -> String {
    if self.providers[name] == nil {
      place.field("instance_name").report("unrecognized certificate provider instance name: \(name)")
    }
    return name
  }
}
