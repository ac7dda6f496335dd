/// The outcome of a call: `ok`, or one of the sixteen error codes that Connect and gRPC share.
///
/// <https://connectrpc.com/docs/protocol#error-codes>. The raw values are gRPC's status numbers.
public enum Code: Int, Sendable, Hashable, CaseIterable {
  /// The call succeeded. No error has this code.
  case ok = 0
  /// The call was cancelled, usually by the caller.
  case canceled = 1
  /// An error that fits no other code, or of which nothing more is known.
  case unknown = 2
  /// The request is wrong, whatever the state of the system.
  case invalidArgument = 3
  /// The deadline passed before the call finished.
  case deadlineExceeded = 4
  /// What the request asks for does not exist.
  case notFound = 5
  /// What the request is to create exists already.
  case alreadyExists = 6
  /// The caller is known and may not do this.
  case permissionDenied = 7
  /// A quota, a queue or a size limit is exhausted.
  case resourceExhausted = 8
  /// The system is not in a state in which the call can be done.
  case failedPrecondition = 9
  /// The call was aborted, usually by a conflict; a higher level may retry.
  case aborted = 10
  /// The request goes past a valid range, for example past the end of a file. In another state of the system it may
  /// be valid.
  case outOfRange = 11
  /// The method does not exist or is not supported.
  case unimplemented = 12
  /// An invariant is broken: a peer that breaks the protocol, a message that does not decode.
  case internalError = 13
  /// The service cannot be reached at the moment; usually worth a retry.
  case unavailable = 14
  /// Data is lost or corrupted and cannot be recovered.
  case dataLoss = 15
  /// The caller has no valid credentials.
  case unauthenticated = 16

  /// The name that Connect puts on the wire, for example `invalid_argument`.
  public var name: String {
    switch self {
    case .ok: "ok"
    case .canceled: "canceled"
    case .unknown: "unknown"
    case .invalidArgument: "invalid_argument"
    case .deadlineExceeded: "deadline_exceeded"
    case .notFound: "not_found"
    case .alreadyExists: "already_exists"
    case .permissionDenied: "permission_denied"
    case .resourceExhausted: "resource_exhausted"
    case .failedPrecondition: "failed_precondition"
    case .aborted: "aborted"
    case .outOfRange: "out_of_range"
    case .unimplemented: "unimplemented"
    case .internalError: "internal"
    case .unavailable: "unavailable"
    case .dataLoss: "data_loss"
    case .unauthenticated: "unauthenticated"
    }
  }

  /// The name in gRPC, for example `INVALID_ARGUMENT`
  /// (<https://github.com/grpc/grpc/blob/master/doc/statuscodes.md>).
  package var grpcName: String {
    self == .canceled ? "CANCELLED" : self.name.uppercased()
  }

  /// The error code with this name on the wire; nil for an unknown name and for `ok`, which no error has.
  public init?(name: String) {
    guard let code = Self.byName[name] else { return nil }
    self = code
  }

  private static let byName = Dictionary(
    uniqueKeysWithValues: Code.allCases.filter { $0 != .ok }.map { ($0.name, $0) }
  )

  /// The code for an HTTP response that carries no usable RPC error.
  ///
  /// <https://connectrpc.com/docs/protocol#http-to-error-code>. It is not the inverse of the table that
  /// servers use.
  public init(httpStatus: Int) {
    switch httpStatus {
    case 200: self = .ok
    case 400: self = .internalError
    case 401: self = .unauthenticated
    case 403: self = .permissionDenied
    case 404: self = .unimplemented
    case 429, 502, 503, 504: self = .unavailable
    default: self = .unknown
    }
  }

  /// The code for a stream that the peer reset with an HTTP/2 error code.
  ///
  /// <https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md#errors>
  public init(http2ErrorCode: UInt32) {
    switch http2ErrorCode {
    case 0x7: self = .unavailable  // REFUSED_STREAM
    case 0x8: self = .canceled  // CANCEL
    case 0xb: self = .resourceExhausted  // ENHANCE_YOUR_CALM
    case 0xc: self = .permissionDenied  // INADEQUATE_SECURITY
    default: self = .internalError
    }
  }
}

extension Code: CustomStringConvertible {
  public var description: String { self.name }
}
