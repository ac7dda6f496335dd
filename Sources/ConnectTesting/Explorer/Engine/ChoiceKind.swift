/// What is chosen.
enum ChoiceKind: Int, Sendable, Hashable, CaseIterable {
  /// Which piece of ready work runs next.
  case order
  /// Whether a piece of work waits until all other work is done.
  case postponement
  /// Whether a call is cancelled now.
  case cancellation
  /// Whether a call's deadline passes now.
  case deadline
  /// What the server answers.
  case answer
  /// When the server answers.
  case answerTime
  /// When a step of the test returns, and whether it fails.
  case step
  /// When a call begins.
  case begin
  /// Whether a call has a deadline.
  case timeout
  /// What other interceptors do.
  case neighbour

  /// How often a random schedule deviates here, if there are few choices of the kind.
  var weight: Double {
    switch self {
    case .order: 0.15
    case .postponement: 0.04
    case .cancellation, .deadline: 0.01
    case .answer: 0.4
    case .answerTime, .step, .timeout: 0.3
    case .begin: 0.6
    case .neighbour: 0.2
    }
  }
}
