import Foundation

extension String {
  func padded(_ width: Int, left: Bool = false) -> String {
    let padding = String(repeating: " ", count: max(width - self.count, 0))
    return left ? padding + self : self + padding
  }
}

extension Duration {
  var milliseconds: String { String(format: "%.3f ms", self / .milliseconds(1)) }
}
