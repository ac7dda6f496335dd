/// Spreads calls over the pickers of several parts, each of which gets its share.
final class SharePicker: Picker {
  private let names: [String]
  private let pickers: [any Picker]
  /// Each call changes it, so exclusivity is not checked at run time. That is safe: it calls nobody.
  @exclusivity(unchecked) private var scheduler: ShareScheduler

  /// A part that gets calls.
  struct Part {
    var name: String
    /// Greater than 0; relative to the other parts.
    var share: Double
    var picker: any Picker
  }

  /// - Parameters:
  ///   - parts: At least one.
  ///   - last: The picker before, whose turns go on: a restart at each change would spread calls unevenly.
  init(_ parts: [Part], after last: SharePicker?, random: inout SeededRandom) {
    self.names = parts.map(\.name)
    self.pickers = parts.map(\.picker)
    var waits: [String: Double] = [:]
    if let last { for (name, wait) in zip(last.names, last.scheduler.waits) { waits[name] = wait } }
    var starts: [Double] = []
    for part in parts { starts.append(waits[part.name] ?? random.fraction()) }
    self.scheduler = ShareScheduler(parts.map(\.share), waits: starts)
  }

  func pick(_ call: borrowing PickContext) -> PickResult {
    self.pickers[self.scheduler.next()].pick(call)
  }
}
