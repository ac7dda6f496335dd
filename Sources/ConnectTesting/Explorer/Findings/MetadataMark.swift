internal import Connect

/// A field in which each answer of the explorer's server has the mark of its attempt. The raw value is its name.
enum MetadataMark: String, CaseIterable {
  case header = "x-answer"
  case trailer = "x-answer-trailer"

  /// What is wrong with the field as the caller got it: the mark should arrive once, and no other mark. Nil if nothing is wrong.
  ///
  /// - Parameters:
  ///   - id: The mark.
  ///   - isRight: Whether a value is the mark of an attempt whose response the call may have.
  func problem(in call: ExploredCall, of id: String, isRight: (String) -> Bool) -> String? {
    let values = (self == .header ? call.headers : call.trailers)[self.rawValue]
    // The metadata of an error may have the field instead.
    let others = call.error?.metadata[self.rawValue] ?? []
    if values.isEmpty, others.isEmpty {
      // Interceptors that create a new error often leave out the headers.
      return call.error != nil && self == .header ? nil : "does not reach the caller"
    }
    if let wrong = (values + others).first(where: { !isRight($0) }) {
      return "is “\(shortened(wrong))” where only “\(id)” was sent"
    }
    let count = max(values.count, others.count)
    return count > 1 ? "comes \(count) times" : nil
  }
}
