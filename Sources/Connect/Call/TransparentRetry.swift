extension Attempt {
  /// What a call has had of transparent retries.
  struct TransparentRetries {
    /// Whether the call has used its transparent retry. Hedges have their own.
    var isUsed = false
    /// How often the call was sent again without using its transparent retry.
    var freeCount = 0
  }

  /// Allows to send a request again, once, if the server certainly did not process it.
  enum TransparentRetry {
    /// The retry of the call, which all attempts except hedges share.
    case ofCall
    /// The retry of a hedge.
    case own
    /// A hedge has used its retry.
    case used

    /// How often a call is sent again without using its transparent retry. Servers that renew connections make that necessary
    /// a few times, with many calls in flight.
    private static let freeRetries = 100

    /// - Returns: Whether the request may be sent again after `failure`.
    mutating func take(from attempts: Attempts, after failure: HTTPStreamFailure) -> Bool {
      if failure.keepsTransparentRetry, attempts.transparentRetries.freeCount < Self.freeRetries {
        attempts.transparentRetries.freeCount += 1
        return true
      }
      switch self {
      case .ofCall:
        defer { attempts.transparentRetries.isUsed = true }
        return !attempts.transparentRetries.isUsed
      case .own:
        self = .used
        return true
      case .used:
        return false
      }
    }
  }
}
