extension GeneratorOptions {
  /// An option that must be equal for a client and its mock, since it decides which functions they have.
  struct Shared {
    let key: String
    let value: String
    /// The other values that the option can have.
    let otherValues: [String]

    fileprivate init(_ key: String, _ value: Bool) {
      self.init(key, "\(value)", of: ["true", "false"])
    }

    fileprivate init(_ key: String, _ value: String, of values: [String]) {
      self.key = key
      self.value = value
      self.otherValues = values.filter { $0 != value }
    }

    /// The name of this option value in the generated code.
    var name: String { self.name(of: self.value) }

    func name(of value: String) -> String { "\(self.key)_\(value)" }
  }

  var shared: [Shared] {
    [
      Shared("GenerateAsyncMethods", self.generatesAsyncMethods),
      Shared("GenerateCallbackMethods", self.generatesCallbackMethods),
      Shared("KeepMethodCasing", self.keepsMethodCasing),
      Shared("MessageFamily", self.messageFamily.rawValue, of: MessageFamily.allCases.map(\.rawValue)),
    ]
  }
}
