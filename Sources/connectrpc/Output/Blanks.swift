extension StringProtocol {
  /// The text without blanks and tabs at both ends. Those around values of options come from quotation marks and lists.
  var withoutBlanks: String {
    let isBlank: (Character) -> Bool = { $0 == " " || $0 == "\t" }
    guard let first = self.firstIndex(where: { !isBlank($0) }),
      let last = self.lastIndex(where: { !isBlank($0) })
    else { return "" }
    return String(self[first...last])
  }
}
