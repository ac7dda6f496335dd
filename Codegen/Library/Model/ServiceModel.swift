import SwiftProtobuf
import SwiftProtobufPluginLibrary

/// A service as the generators see it. All names are ready to be written.
package struct ServiceModel {
  /// As in the proto file, with its package.
  let fullName: String
  let interfaceName: String
  let clientName: String
  let mockName: String
  /// The name of the type in the client that holds the methods' specifications.
  let specsName: String
  /// The name of the type in the client that holds the options that the mock must share.
  let optionsName: String
  /// The name of the type in connect-swift's client that describes the methods.
  let metadataName: String
  /// The prefixes of names of the modules `Connect`, `ConnectTesting` and `ConnectSwiftCompatibility`.
  let runtime: String
  let testing: String
  let compatibility: String
  let isDeprecated: Bool
  let comments: Comments
  let methods: [MethodModel]

  init(
    _ service: ServiceDescriptor,
    _ options: GeneratorOptions,
    _ messages: any MessageNaming,
    typeNames: Set<String>,
    visibleTypes: Set<String>,
    scope: inout NameScope
  ) {
    let name = scope.claim(messages.typePrefix(of: service.file) + service.name) {
      ["\($0)Client", "\($0)ClientInterface", "\($0)ClientMock"]
    }
    self.fullName = service.fullName
    self.interfaceName = "\(name)ClientInterface"
    self.clientName = "\(name)Client"
    self.mockName = "\(name)ClientMock"
    // Within the client, these types hide messages of the same names.
    var types = NameScope(taken: typeNames)
    self.specsName = types.claim("Methods")
    self.optionsName = types.claim("StubOptions")
    self.metadataName = types.claim("Metadata")
    self.runtime = "Connect".modulePrefix(visibleTypes)
    self.testing = "ConnectTesting".modulePrefix(visibleTypes)
    self.compatibility = "ConnectSwiftCompatibility".modulePrefix(visibleTypes)
    self.isDeprecated = service.options.deprecated || service.file.options.deprecated
    self.comments = Comments(service.sourceCodeInfoLocation)

    let names = Self.methodNames(
      service.methods.map(\.name),
      options,
      taken: options.followsConnectSwift
        ? [self.metadataName, self.clientName] : [self.specsName, self.optionsName, self.clientName]
    )
    var mockNames = NameScope(taken: ["client"])
    self.methods = zip(service.methods, names).map { method, name in
      let mockName =
        options.followsConnectSwift
        ? mockNames.claim(NamingUtils.toUpperCamelCase(method.name)) { ["mock\($0)", "mockAsync\($0)"] }
        : mockNames.claim("mock\(name.capitalizedFirst)")
      return MethodModel(method, name: name, mockName: mockName, messages)
    }
  }

  /// The functions' names, one for each method.
  private static func methodNames(
    _ protoNames: [String],
    _ options: GeneratorOptions,
    taken: [String]
  ) -> [String] {
    let names = options.keepsMethodCasing ? protoNames : protoNames.map(NamingUtils.toLowerCamelCase)
    let uses = Dictionary(names.map { ($0, 1) }, uniquingKeysWith: +)
    // The words mean something else wherever they stand. The names of modules and types are used beside the functions.
    let words = ["_", "init", "self", "Self", "Type", "Protocol", "dynamicType"]
    let modules = [
      "Connect", "ConnectTesting", "ConnectSwiftCompatibility", "ConnectProtobufC", "SwiftProtobuf",
    ]
    var scope = NameScope(taken: Set(words + modules + taken))
    return zip(names, protoNames).map { name, protoName in
      // Methods whose names differ only in casing keep their casing.
      scope.claim(uses[name] == 1 ? name : protoName)
    }
  }
}

extension String {
  fileprivate var capitalizedFirst: String {
    self.prefix(1).uppercased() + self.dropFirst()
  }
}
