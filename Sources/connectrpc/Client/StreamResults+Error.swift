import Connect

extension StreamResults {
  /// The error that the stream ends with; nil for success. The results are dropped.
  var error: ConnectError? {
    get async {
      for await result in self {
        if case .complete(_, let error, _) = result { return error }
      }
      // The results end early if the task is cancelled.
      return ConnectError(CancellationError())
    }
  }
}
