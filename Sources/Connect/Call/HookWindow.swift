internal import DequeModule

/// The values that wait at one hook, in order, each until the hook has proceeded with it.
final class HookWindow<Element> {
  private enum State {
    case waiting(Element)
    case ready(Element)
    case dropped
  }

  private struct Slot {
    let id: Int?
    var state: State
  }

  private var slots: Deque<Slot>

  init() { self.slots = [] }

  private init(_ slots: Deque<Slot>) { self.slots = slots }

  var count: Int { self.slots.count }
  var isEmpty: Bool { self.slots.isEmpty }

  /// Whether nothing waits. A window is created only when something waits.
  static func isClear(_ window: HookWindow?) -> Bool { window?.isEmpty ?? true }

  /// Adds a value that does not wait for the hook.
  ///
  /// - Returns: This window, to be kept by who has made it for the value.
  @discardableResult
  func appendReady(_ element: Element) -> HookWindow {
    self.slots.append(Slot(id: nil, state: .ready(element)))
    return self
  }

  /// Adds a value that the hook receives with this number. Numbers are never reused, so a late `proceed` finds nothing.
  ///
  /// - Returns: As ``appendReady(_:)``.
  @discardableResult
  func appendWaiting(_ element: Element, as id: Int) -> HookWindow {
    self.slots.append(Slot(id: id, state: .waiting(element)))
    return self
  }

  /// Whether the hook has not yet proceeded with one of the values.
  var hasWaiting: Bool {
    self.slots.contains { if case .waiting = $0.state { true } else { false } }
  }

  /// The first value, if the hook has not yet proceeded with it.
  var firstWaiting: Element? {
    if case .waiting(let element)? = self.slots.first?.state { element } else { nil }
  }

  /// Lets all values before the one with this number go on unchanged, if the hook has not yet proceeded with them.
  func passAll(before id: Int) {
    guard let index = self.index(of: id) else { return }
    for index in 0..<index {
      if case .waiting(let element) = self.slots[index].state { self.slots[index].state = .ready(element) }
    }
  }

  /// The value with this number, if the hook has not yet proceeded with it.
  func waiting(_ id: Int) -> Element? {
    guard let index = self.index(of: id), case .waiting(let element) = self.slots[index].state else {
      return nil
    }
    return element
  }

  /// Sets what goes on in place of the value with this number; nil for nothing.
  func resolve(_ id: Int, with element: Element?) {
    guard let index = self.index(of: id) else { return }
    self.slots[index].state = element.map(State.ready) ?? .dropped
  }

  /// Removes all values after the one with this number.
  ///
  /// - Returns: The removed values. Releasing them may run user code that re-enters the owner. So the owner releases
  ///   them after its access to this window.
  @discardableResult
  func removeAll(behind id: Int) -> HookWindow {
    let first = self.index(of: id).map { $0 + 1 } ?? self.slots.count
    let removed = HookWindow(Deque(self.slots[first...]))
    self.slots.removeSubrange(first...)
    return removed
  }

  /// The first value, if it is ready.
  func takeReady() -> Element? {
    while let first = self.slots.first {
      switch first.state {
      case .waiting:
        return nil
      case .dropped:
        self.slots.removeFirst()
      case .ready(let element):
        self.slots.removeFirst()
        return element
      }
    }
    return nil
  }

  private func index(of id: Int) -> Int? {
    self.slots.firstIndex { $0.id == id }
  }
}
