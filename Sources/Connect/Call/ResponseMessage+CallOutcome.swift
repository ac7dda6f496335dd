extension ResponseMessage {
  /// Takes over what call hooks have made of the call's outcome.
  mutating func take(_ outcome: CallOutcome) {
    self.headers = outcome.headers
    self.trailers = outcome.trailers
    if let error = outcome.error { self.result = .failure(error) }
  }
}
