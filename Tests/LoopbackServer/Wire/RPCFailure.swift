internal import Foundation
internal import SwiftProtobuf

/// The error that a call fails with.
struct RPCFailure: Error {
  var code: Connect_Test_V1_Code
  var message: String
  var details: [Google_Protobuf_Any] = []

  init(_ code: Connect_Test_V1_Code, _ message: String, details: [Google_Protobuf_Any] = []) {
    self.code = code
    self.message = message
    self.details = details
  }

  /// Any error as one of a call.
  init(_ error: any Error) {
    self = error as? RPCFailure ?? RPCFailure(.internal, "\(error)")
  }
}

extension RPCFailure {
  /// The JSON object of the Connect protocol. <https://connectrpc.com/docs/protocol#error-end-stream>
  struct Body: Encodable {
    struct Detail: Encodable {
      var type: String
      var value: String
    }

    var code: String
    var message: String?
    var details: [Detail]?
  }

  var body: Body {
    Body(
      code: self.code.wireName,
      message: self.message.isEmpty ? nil : self.message,
      details: self.details.isEmpty
        ? nil
        : self.details.map { detail in
          let type = detail.typeURL.split(separator: "/").last.map(String.init) ?? ""
          let value = detail.value.base64EncodedString()
          return Body.Detail(type: type, value: value.replacing("=", with: ""))
        }
    )
  }
}

extension Connect_Test_V1_Code {
  /// The name in the JSON of the Connect protocol.
  var wireName: String {
    switch self {
    case .canceled: "canceled"
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
    case .internal: "internal"
    case .unavailable: "unavailable"
    case .dataLoss: "data_loss"
    case .unauthenticated: "unauthenticated"
    case .unspecified, .unknown, .UNRECOGNIZED: "unknown"
    }
  }

  /// The HTTP status of a failed unary call. <https://connectrpc.com/docs/protocol#error-codes>
  var httpStatus: Int {
    switch self {
    case .canceled: 499
    case .invalidArgument, .failedPrecondition, .outOfRange: 400
    case .deadlineExceeded: 504
    case .notFound: 404
    case .alreadyExists, .aborted: 409
    case .permissionDenied: 403
    case .resourceExhausted: 429
    case .unimplemented: 501
    case .unavailable: 503
    case .unauthenticated: 401
    case .unspecified, .unknown, .internal, .dataLoss, .UNRECOGNIZED: 500
    }
  }
}
