internal import ConformanceMessages
internal import Connect
internal import Foundation
internal import NIOCore
internal import SwiftProtobuf

extension ResponseResult {
  /// Tells how a call with a single response ended.
  mutating func record(_ response: ResponseMessage<some ConformanceResponse>, _ invariants: Invariants) {
    self.responseHeaders = response.headers.conformanceHeaders
    switch response.result {
    case .success(let message):
      self.responseTrailers = response.trailers.conformanceHeaders
      self.payloads = [message.payload]
    case .failure(let error):
      self.record(error, code: response.code, trailers: response.trailers, invariants)
    }
  }

  /// Tells how a call failed. The error's metadata are its trailers, where no others arrived.
  mutating func record(_ error: ConnectError, code: Code, trailers: Headers, _ invariants: Invariants) {
    self.error = Connectrpc_Conformance_V1_Error(error)
    self.responseTrailers = (trailers.isEmpty ? error.metadata : trailers).conformanceHeaders
    if let status = error.httpStatus { self.httpStatusCode = Int32(clamping: status) }
    if code != error.code { invariants.report("code \(code) came with an error of code \(error.code)") }
    if error.code == .ok { invariants.report("an error has the code ok") }
  }
}

extension Connectrpc_Conformance_V1_Error {
  init(_ error: ConnectError) {
    self.init()
    self.code = Connectrpc_Conformance_V1_Code(rawValue: error.code.rawValue) ?? .unspecified
    if let message = error.message { self.message = message }
    self.details = error.details.map { detail in
      Google_Protobuf_Any.with {
        $0.typeURL = "type.googleapis.com/\(detail.type)"
        $0.value = Data(detail.value.readableBytesView)
      }
    }
  }
}
