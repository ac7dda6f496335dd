public import Connect

extension ResponseMessage {
  /// The message of a call that has to have succeeded.
  ///
  /// - Throws: ``ExpectationFailure`` with the error, its details and metadata.
  public func requireMessage(file: StaticString = #fileID, line: UInt = #line) throws -> Output {
    switch self.result {
    case .success(let message): return message
    case .failure(let error):
      throw ExpectationFailure(
        "expected a message, and the call failed with \(error.summary)\n\(file):\(line)"
      )
    }
  }

  /// The error of a call that has to have failed with `code`.
  ///
  /// - Throws: ``ExpectationFailure`` with the message, or the other error with its details and metadata.
  @discardableResult
  public func requireError(
    _ code: Code,
    file: StaticString = #fileID,
    line: UInt = #line
  ) throws -> ConnectError {
    let found: String
    switch self.result {
    case .failure(let error) where error.code == code: return error
    case .failure(let error): found = "it failed with \(error.summary)"
    case .success(let message): found = "it succeeded with\n\(description(of: message))"
    }
    throw ExpectationFailure("expected the call to fail with \(code), and \(found)\n\(file):\(line)")
  }
}
