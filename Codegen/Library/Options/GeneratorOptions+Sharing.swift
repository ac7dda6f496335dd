extension GeneratorOptions {
  /// An option that a client and its mock need in common, since it decides which functions they have.
  struct Shared {
    let key: String
    let value: String
    /// What the option could be instead.
    let otherValues: [String]

    fileprivate init(_ key: String, _ value: Bool) {
      self.init(key, "\(value)", of: ["true", "false"])
    }

    fileprivate init(_ key: String, _ value: String, of values: [String]) {
      self.key = key
      self.value = value
      self.otherValues = values.filter { $0 != value }
    }

    /// What stands for this value of the option in the generated code.
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
