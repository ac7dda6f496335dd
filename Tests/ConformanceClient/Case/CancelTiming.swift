internal import ConformanceMessages

/// When a call is to be cancelled.
enum CancelTiming: Sendable, Equatable {
  case never
  /// In place of ending the request, though the request is ended then, too.
  case beforeCloseSend
  /// So long after the request was ended.
  case afterCloseSend(Duration)
  /// As soon as so many responses were received.
  case afterResponses(Int)

  init(_ request: CompatRequest) {
    guard request.hasCancel else {
      self = .never
      return
    }
    switch request.cancel.cancelTiming {
    case .beforeCloseSend: self = .beforeCloseSend
    case .afterCloseSendMs(let delay): self = .afterCloseSend(.milliseconds(Int(delay)))
    case .afterNumResponses(let count): self = .afterResponses(Int(count))
    case nil: self = .afterCloseSend(.zero)
    }
  }

  /// How long after the end of the request to cancel, for a call whose request ends as soon as it starts.
  var delayAfterStart: Duration? {
    switch self {
    case .beforeCloseSend: .zero
    case .afterCloseSend(let delay): delay
    case .never, .afterResponses: nil
    }
  }
}
