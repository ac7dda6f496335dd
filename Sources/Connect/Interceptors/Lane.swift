/// One hook's place in a ``Lane``: takes values in order and gives them on in the same order.
class LaneStage<Element>: HookOwner, @unchecked Sendable {
  private var nextID = 0

  /// A number for a value, which is never used again.
  final func takeID() -> Int {
    self.nextID += 1
    return self.nextID - 1
  }

  /// Whether a value may be given to it now.
  var hasRoom: Bool { true }
  /// Whether nothing is kept here, and nothing will come from here that was not given to it.
  var isEmpty: Bool { true }
  /// Gives it a value.
  ///
  /// - Parameter mayPass: Whether there is room behind.
  /// - Returns: What goes on at once, if there is room and nothing to wait for. Else it is kept.
  func accept(_ element: Element, mayPass: Bool) -> Element? { element }
  /// The next value to pass on, if it is there.
  func takeReady() -> Element? { nil }
  /// Whether values should be brought to it, given whether what is behind it wants any.
  func wants(_ isWantedBehind: Bool) -> Bool { isWantedBehind && self.hasRoom }
}

/// The hooks that a stream's values pass in one direction, with a bound on what waits at each.
///
/// Values move only when there is room behind, so whoever is slow, a hook, the wire or the caller, holds back
/// the source.
///
/// Confined to the call's executor.
final class Lane<Element> {
  typealias Stage = LaneStage<Element>

  /// In the direction of the flow.
  private let stages: [Stage]
  private let sink: (Element) -> Void
  private let sinkHasRoom: () -> Bool

  /// From this stage on, or from the sink on, what flows is thrown away; nil if nothing is.
  private(set) var cut: Int?
  /// Whether a stage may keep a value, or have one of its own.
  private(set) var mayKeep = false

  init(
    stages: [Stage],
    sink: @escaping (Element) -> Void,
    sinkHasRoom: @escaping () -> Bool
  ) {
    self.stages = stages
    self.sink = sink
    self.sinkHasRoom = sinkHasRoom
    self.mayKeep = stages.contains { !$0.isEmpty }
  }

  /// One of the stages keeps a value that did not pass at once.
  func didKeep() {
    self.mayKeep = true
  }

  func cut(at index: Int) {
    self.cut = min(self.cut ?? index, index)
  }

  func mend() {
    self.cut = nil
  }

  func hasRoom(at index: Int = 0) -> Bool {
    if let cut = self.cut, index >= cut { return true }
    return index < self.stages.count ? self.stages[index].hasRoom : self.sinkHasRoom()
  }

  func accept(_ element: consuming Element, at index: Int = 0) {
    var element = element
    for index in index..<max(index, self.stages.count) {
      if let cut = self.cut, index >= cut { return }
      let hasRoomBehind = self.hasRoom(at: index + 1)
      let stage = self.stages[index]
      guard let passed = stage.accept(element, mayPass: hasRoomBehind) else {
        self.mayKeep = true
        return
      }
      // A hook may pass on more than it was given.
      if !stage.isEmpty { self.mayKeep = true }
      element = passed
    }
    if let cut = self.cut, cut <= self.stages.count { return }
    self.sink(element)
  }

  /// Moves one value on from each stage, if there is room, those furthest along first. So a value goes as far as
  /// it can before the next one gets to the same stage.
  ///
  /// - Returns: Whether anything moved.
  func pump(isWantedBehind: Bool) -> Bool {
    guard self.mayKeep else { return false }
    var hasMoved = false
    var isWanted = isWantedBehind
    self.mayKeep = false
    for index in self.stages.indices.reversed() {
      let stage = self.stages[index]
      let wants = stage.wants(isWanted)
      if self.hasRoom(at: index + 1), let element = stage.takeReady() {
        hasMoved = true
        self.accept(element, at: index + 1)
      }
      isWanted = wants
      if !stage.isEmpty { self.mayKeep = true }
    }
    return hasMoved
  }

  /// Whether values should be brought to the stage at `index`.
  func wants(at index: Int = 0, isWantedBehind: Bool) -> Bool {
    guard self.mayKeep else { return isWantedBehind }
    var isWanted = isWantedBehind
    for stage in self.stages[index...].reversed() { isWanted = stage.wants(isWanted) }
    return isWanted && self.hasRoom(at: index)
  }
}
