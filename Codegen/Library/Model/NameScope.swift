import SwiftProtobufPluginLibrary

/// Names that are taken in one scope of the generated code.
struct NameScope {
  private var taken: Set<String>

  init(taken: some Sequence<String> = []) {
    self.taken = Set(taken)
  }

  /// The name itself if it is free, else the name with as many underscores behind it as it needs.
  mutating func claim(_ name: String) -> String {
    var name = name
    while !self.taken.insert(name).inserted { name += "_" }
    return name
  }

  /// The first of `name`, `name_`, `name__`, … for which every name that `derive` makes is free.
  mutating func claim(_ name: String, deriving derive: (String) -> [String]) -> String {
    var name = name
    while !self.taken.isDisjoint(with: derive(name)) { name += "_" }
    self.taken.formUnion(derive(name))
    return name
  }
}

extension String {
  /// The name as it is written in a declaration: in backticks if it is a keyword.
  var escapedIdentifier: String {
    let isKeyword =
      swiftKeywordsUsedInDeclarations.contains(self) || swiftKeywordsUsedInStatements.contains(self)
      || swiftKeywordsUsedInExpressionsAndTypes.contains(self) || self == "precedencegroup"
    return isKeyword ? "`\(self)`" : self
  }
}
