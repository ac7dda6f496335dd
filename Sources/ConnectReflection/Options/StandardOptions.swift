internal import SwiftProtobuf

/// The options that protobuf itself defines. A set of files need not contain google/protobuf/descriptor.proto.
enum StandardOptions {
  private static let package = "google.protobuf"

  /// The fields by the full name of the message.
  static let fields: [String: [OptionField]] = Dictionary(
    uniqueKeysWithValues: [
      "FileOptions": [
        text(1, "java_package"), text(8, "java_outer_classname"), bool(10, "java_multiple_files"),
        bool(20, "java_generate_equals_and_hash"), bool(27, "java_string_check_utf8"),
        value(9, "optimize_for", "FileOptions.OptimizeMode"), text(11, "go_package"),
        bool(16, "cc_generic_services"), bool(17, "java_generic_services"), bool(18, "py_generic_services"),
        bool(42, "php_generic_services"), bool(23, "deprecated"), bool(31, "cc_enable_arenas"),
        text(36, "objc_class_prefix"), text(37, "csharp_namespace"), text(39, "swift_prefix"),
        text(40, "php_class_prefix"), text(41, "php_namespace"), text(44, "php_metadata_namespace"),
        text(45, "ruby_package"), message(50, "features", "FeatureSet"),
      ],
      "MessageOptions": [
        bool(1, "message_set_wire_format"), bool(2, "no_standard_descriptor_accessor"),
        bool(3, "deprecated"), bool(7, "map_entry"), bool(11, "deprecated_legacy_json_field_conflicts"),
        message(12, "features", "FeatureSet"),
      ],
      "FieldOptions": [
        value(1, "ctype", "FieldOptions.CType"), bool(2, "packed"), bool(3, "deprecated"), bool(5, "lazy"),
        value(6, "jstype", "FieldOptions.JSType"), bool(10, "weak"), bool(15, "unverified_lazy"),
        bool(16, "debug_redact"), value(17, "retention", "FieldOptions.OptionRetention"),
        value(19, "targets", "FieldOptions.OptionTargetType").repeated,
        message(20, "edition_defaults", "FieldOptions.EditionDefault").repeated,
        message(21, "features", "FeatureSet"), message(22, "feature_support", "FieldOptions.FeatureSupport"),
      ],
      "FieldOptions.EditionDefault": [value(3, "edition", "Edition"), text(2, "value")],
      "FieldOptions.FeatureSupport": [
        value(1, "edition_introduced", "Edition"), value(2, "edition_deprecated", "Edition"),
        text(3, "deprecation_warning"), value(4, "edition_removed", "Edition"), text(5, "removal_error"),
      ],
      "OneofOptions": [message(1, "features", "FeatureSet")],
      "ExtensionRangeOptions": [
        message(2, "declaration", "ExtensionRangeOptions.Declaration").repeated,
        value(3, "verification", "ExtensionRangeOptions.VerificationState"),
        message(50, "features", "FeatureSet"),
      ],
      "ExtensionRangeOptions.Declaration": [
        OptionField(number: 1, name: "number", kind: .int32), text(2, "full_name"), text(3, "type"),
        bool(5, "reserved"), bool(6, "repeated"),
      ],
      "EnumOptions": [
        bool(2, "allow_alias"), bool(3, "deprecated"), bool(6, "deprecated_legacy_json_field_conflicts"),
        message(7, "features", "FeatureSet"),
      ],
      "EnumValueOptions": [
        bool(1, "deprecated"), message(2, "features", "FeatureSet"), bool(3, "debug_redact"),
        message(4, "feature_support", "FieldOptions.FeatureSupport"),
      ],
      "ServiceOptions": [bool(33, "deprecated"), message(34, "features", "FeatureSet")],
      "MethodOptions": [
        bool(33, "deprecated"), value(34, "idempotency_level", "MethodOptions.IdempotencyLevel"),
        message(35, "features", "FeatureSet"),
      ],
      "FeatureSet": [
        value(1, "field_presence", "FeatureSet.FieldPresence"),
        value(2, "enum_type", "FeatureSet.EnumType"),
        value(3, "repeated_field_encoding", "FeatureSet.RepeatedFieldEncoding"),
        value(4, "utf8_validation", "FeatureSet.Utf8Validation"),
        value(5, "message_encoding", "FeatureSet.MessageEncoding"),
        value(6, "json_format", "FeatureSet.JsonFormat"),
        value(7, "enforce_naming_style", "FeatureSet.EnforceNamingStyle"),
        value(8, "default_symbol_visibility", "FeatureSet.VisibilityFeature.DefaultSymbolVisibility"),
      ],
    ].map { ("\(package).\($0.key)", $0.value) }
  )

  /// The names of values by the full name of the enum.
  static let values: [String: [Int32: String]] = Dictionary(
    uniqueKeysWithValues: [
      "FileOptions.OptimizeMode": [1: "SPEED", 2: "CODE_SIZE", 3: "LITE_RUNTIME"],
      "FieldOptions.CType": [0: "STRING", 1: "CORD", 2: "STRING_PIECE"],
      "FieldOptions.JSType": [0: "JS_NORMAL", 1: "JS_STRING", 2: "JS_NUMBER"],
      "FieldOptions.OptionRetention": [
        0: "RETENTION_UNKNOWN", 1: "RETENTION_RUNTIME", 2: "RETENTION_SOURCE",
      ],
      "FieldOptions.OptionTargetType": [
        0: "TARGET_TYPE_UNKNOWN", 1: "TARGET_TYPE_FILE", 2: "TARGET_TYPE_EXTENSION_RANGE",
        3: "TARGET_TYPE_MESSAGE", 4: "TARGET_TYPE_FIELD", 5: "TARGET_TYPE_ONEOF", 6: "TARGET_TYPE_ENUM",
        7: "TARGET_TYPE_ENUM_ENTRY", 8: "TARGET_TYPE_SERVICE", 9: "TARGET_TYPE_METHOD",
      ],
      "ExtensionRangeOptions.VerificationState": [0: "DECLARATION", 1: "UNVERIFIED"],
      "MethodOptions.IdempotencyLevel": [0: "IDEMPOTENCY_UNKNOWN", 1: "NO_SIDE_EFFECTS", 2: "IDEMPOTENT"],
      "FeatureSet.FieldPresence": [
        0: "FIELD_PRESENCE_UNKNOWN", 1: "EXPLICIT", 2: "IMPLICIT", 3: "LEGACY_REQUIRED",
      ],
      "FeatureSet.EnumType": [0: "ENUM_TYPE_UNKNOWN", 1: "OPEN", 2: "CLOSED"],
      "FeatureSet.RepeatedFieldEncoding": [0: "REPEATED_FIELD_ENCODING_UNKNOWN", 1: "PACKED", 2: "EXPANDED"],
      "FeatureSet.Utf8Validation": [0: "UTF8_VALIDATION_UNKNOWN", 2: "VERIFY", 3: "NONE"],
      "FeatureSet.MessageEncoding": [0: "MESSAGE_ENCODING_UNKNOWN", 1: "LENGTH_PREFIXED", 2: "DELIMITED"],
      "FeatureSet.JsonFormat": [0: "JSON_FORMAT_UNKNOWN", 1: "ALLOW", 2: "LEGACY_BEST_EFFORT"],
      "FeatureSet.EnforceNamingStyle": [
        0: "ENFORCE_NAMING_STYLE_UNKNOWN", 1: "STYLE2024", 2: "STYLE_LEGACY",
      ],
      "FeatureSet.VisibilityFeature.DefaultSymbolVisibility": [
        0: "DEFAULT_SYMBOL_VISIBILITY_UNKNOWN", 1: "EXPORT_ALL", 2: "EXPORT_TOP_LEVEL", 3: "LOCAL_ALL",
        4: "STRICT",
      ],
      "Edition": [
        0: "EDITION_UNKNOWN", 900: "EDITION_LEGACY", 998: "EDITION_PROTO2", 999: "EDITION_PROTO3",
        1000: "EDITION_2023", 1001: "EDITION_2024", 9999: "EDITION_UNSTABLE",
      ],
    ].map { ("\(package).\($0.key)", $0.value) }
  )

  private static func text(_ number: Int32, _ name: String) -> OptionField {
    OptionField(number: number, name: name, kind: .string)
  }

  private static func bool(_ number: Int32, _ name: String) -> OptionField {
    OptionField(number: number, name: name, kind: .bool)
  }

  private static func value(_ number: Int32, _ name: String, _ type: String) -> OptionField {
    OptionField(number: number, name: name, kind: .enum, typeName: "\(self.package).\(type)")
  }

  private static func message(_ number: Int32, _ name: String, _ type: String) -> OptionField {
    OptionField(number: number, name: name, kind: .message, typeName: "\(self.package).\(type)")
  }
}

extension OptionField {
  fileprivate var repeated: OptionField {
    var field = self
    field.isRepeated = true
    return field
  }
}
