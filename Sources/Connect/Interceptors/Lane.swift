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
struct Lane<Element> {
  /// In the direction of the flow.
  let stages: [any LaneStage<Element>]
  let sink: (Element) -> Void
  let sinkHasRoom: () -> Bool

  func hasRoom(at index: Int = 0) -> Bool {
    index < self.stages.count ? self.stages[index].hasRoom : self.sinkHasRoom()
  }

  func accept(_ element: Element, at index: Int = 0) {
    if index < self.stages.count { self.stages[index].accept(element) } else { self.sink(element) }
  }

  /// Moves values on as far as there is room, those furthest along first.
  ///
  /// - Returns: Whether anything moved.
  func pump(isWantedBehind: Bool) -> Bool {
    var hasMoved = false
    var isWanted = isWantedBehind
    for index in self.stages.indices.reversed() {
      let stage = self.stages[index]
      let wants = stage.wants(isWanted)
      while self.hasRoom(at: index + 1), let element = stage.takeReady() {
        hasMoved = true
        self.accept(element, at: index + 1)
      }
      isWanted = wants
    }
    return hasMoved
  }

  /// Whether values should be brought to the first stage.
  func wants(isWantedBehind: Bool) -> Bool {
    var isWanted = isWantedBehind
    for stage in self.stages.reversed() { isWanted = stage.wants(isWanted) }
    return isWanted && self.hasRoom()
  }
}
