/// One hook's place in a ``Lane``: takes values in order and gives them on in the same order.
protocol LaneStage<Element>: AnyObject {
  associatedtype Element

  /// Whether a value may be given to it now.
  var hasRoom: Bool { get }
  func accept(_ element: Element)
  /// The next value to pass on, if it is there.
  func takeReady() -> Element?
  /// Whether values should be brought to it, given whether what is behind it wants any.
  func wants(_ isWantedBehind: Bool) -> Bool
  /// Lets go of everything; a new attempt begins.
  func reset()
}

/// The hooks that a stream's values pass in one direction, with a bound on what waits at each.
///
/// Values move only when there is room behind, so whoever is slow, a hook, the wire or the caller, holds back
/// the source.
///
/// Confined to the call's executor.
final class Lane<Element> {
  /// In the direction of the flow.
  private let stages: [any LaneStage<Element>]
  private let sink: (Element) -> Void
  private let sinkHasRoom: () -> Bool

  /// From this stage on, or from the sink on, what flows is thrown away; nil if nothing is.
  private(set) var cut: Int?

  init(
    stages: [any LaneStage<Element>],
    sink: @escaping (Element) -> Void,
    sinkHasRoom: @escaping () -> Bool
  ) {
    self.stages = stages
    self.sink = sink
    self.sinkHasRoom = sinkHasRoom
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

  func accept(_ element: Element, at index: Int = 0) {
    if let cut = self.cut, index >= cut { return }
    if index < self.stages.count { self.stages[index].accept(element) } else { self.sink(element) }
  }

  /// Moves one value on from each stage, if there is room, those furthest along first. So a value goes as far as
  /// it can before the next one gets to the same stage.
  ///
  /// - Returns: Whether anything moved.
  func pump(isWantedBehind: Bool) -> Bool {
    var hasMoved = false
    var isWanted = isWantedBehind
    for index in self.stages.indices.reversed() {
      let stage = self.stages[index]
      let wants = stage.wants(isWanted)
      if self.hasRoom(at: index + 1), let element = stage.takeReady() {
        hasMoved = true
        self.accept(element, at: index + 1)
      }
      isWanted = wants
    }
    return hasMoved
  }

  /// Whether values should be brought to the stage at `index`.
  func wants(at index: Int = 0, isWantedBehind: Bool) -> Bool {
    var isWanted = isWantedBehind
    for stage in self.stages[index...].reversed() { isWanted = stage.wants(isWanted) }
    return isWanted && self.hasRoom(at: index)
  }
}
