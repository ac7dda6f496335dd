public import Connect

/// How the explorer's server answers one attempt.
public struct ExplorerAnswer: Sendable, Hashable, CustomStringConvertible {
  enum Kind: Sendable, Hashable {
    case ok
    case failure(Code)
    case headersThenNothing
    case messagesThenFailure(Code)
    case reset
    case nothing
  }

  let kind: Kind

  /// Headers, the messages and trailers: the call succeeds.
  public static let ok = ExplorerAnswer(kind: .ok)
  /// Headers, and then nothing more until the client gives up.
  public static let headersThenNothing = ExplorerAnswer(kind: .headersThenNothing)
  /// The connection is lost before the response: `unavailable`, and the server may have processed the request.
  public static let reset = ExplorerAnswer(kind: .reset)
  /// No answer until the client gives up.
  public static let nothing = ExplorerAnswer(kind: .nothing)
  /// `unauthenticated`.
  public static let unauthenticated = ExplorerAnswer.failure(.unauthenticated)
  /// `unavailable`.
  public static let unavailable = ExplorerAnswer.failure(.unavailable)
  /// `resource_exhausted`.
  public static let resourceExhausted = ExplorerAnswer.failure(.resourceExhausted)
  /// `permission_denied`.
  public static let permissionDenied = ExplorerAnswer.failure(.permissionDenied)
  /// `internal`.
  public static let internalError = ExplorerAnswer.failure(.internalError)

  /// An error with this code, with headers and trailers. `ok` becomes `unknown`.
  public static func failure(_ code: Code) -> ExplorerAnswer {
    ExplorerAnswer(kind: .failure(code == .ok ? .unknown : code))
  }

  /// In streams: the first message, and then an error with this code. In unary calls: the error alone.
  public static func messagesThenFailure(_ code: Code) -> ExplorerAnswer {
    ExplorerAnswer(kind: .messagesThenFailure(code == .ok ? .unknown : code))
  }

  /// The code with which the attempt ends; nil if the server does not end it.
  public var code: Code? {
    switch self.kind {
    case .ok: .ok
    case .failure(let code), .messagesThenFailure(let code): code
    case .reset: .unavailable
    case .headersThenNothing, .nothing: nil
    }
  }

  public var description: String {
    switch self.kind {
    case .ok: "ok"
    case .failure(let code): code.name
    case .headersThenNothing: "headers, then nothing"
    case .messagesThenFailure(let code): "a message, then \(code.name)"
    case .reset: "reset"
    case .nothing: "nothing"
    }
  }
}

/// The explorer's server: what it may answer. Each answer to each attempt is a choice.
public struct ExplorerServer: Sendable {
  let answers: @Sendable (ExploredAttempt) -> [ExplorerAnswer]

  /// The same answers are possible for each attempt. The first one is the usual one.
  ///
  /// - Parameter answers: Should begin with ``ExplorerAnswer/ok``. If empty, only ``ExplorerAnswer/ok``.
  public static func answers(_ answers: ExplorerAnswer...) -> ExplorerServer {
    ExplorerServer { _ in answers }
  }

  /// What is possible depends on the request, for example on its token.
  ///
  /// ```swift
  /// let server = ExplorerServer.answering { attempt in
  ///   attempt.headers["authorization"] == ["Bearer new"] ? [.ok, .unavailable] : [.unauthenticated]
  /// }
  /// ```
  ///
  /// - Parameter answers: Called once per attempt: when the request is complete, or earlier if the server may answer before that. The
  ///   first answer is the usual one.
  public static func answering(
    _ answers: @escaping @Sendable (ExploredAttempt) -> [ExplorerAnswer]
  ) -> ExplorerServer {
    ExplorerServer(answers: answers)
  }
}
