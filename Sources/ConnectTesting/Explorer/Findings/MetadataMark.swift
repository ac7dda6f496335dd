internal import Connect

/// A field in which each answer of the explorer's server has the mark of its attempt.
struct MetadataMark: Sendable {
  let name: String
  /// For findings.
  let place: String
  private let values: @Sendable (ExploredCall) -> [String]
  /// Whether it has to reach the caller of a failed call. Interceptors that make an error of another one often leave out the headers.
  private let isOfErrors: Bool

  static let all = [
    MetadataMark(name: "x-answer", place: "header", values: { $0.headers["x-answer"] }, isOfErrors: false),
    MetadataMark(
      name: "x-answer-trailer",
      place: "trailer",
      values: { $0.trailers["x-answer-trailer"] },
      isOfErrors: true
    ),
  ]

  /// What is wrong with what the caller got: the mark is to arrive once and alone. Nil if it has.
  ///
  /// - Parameters:
  ///   - id: The mark.
  ///   - isRight: Whether a value is the mark, or that of another attempt that is as good.
  func problem(in call: ExploredCall, of id: String, isRight: (String) -> Bool) -> String? {
    let values = self.values(call)
    // An error may have it in its metadata.
    let others = call.error?.metadata[self.name] ?? []
    if values.isEmpty, others.isEmpty {
      return call.error == nil || self.isOfErrors ? "does not reach the caller" : nil
    }
    if let wrong = (values + others).first(where: { !isRight($0) }) {
      return "is “\(shortened(wrong))” where only “\(id)” was sent"
    }
    let count = max(values.count, others.count)
    return count > 1 ? "comes \(count) times" : nil
  }
}
