internal import ConformanceMessages
internal import SwiftProtobuf

typealias CompatRequest = Connectrpc_Conformance_V1_ClientCompatRequest
typealias CompatResponse = Connectrpc_Conformance_V1_ClientCompatResponse
typealias ResponseResult = Connectrpc_Conformance_V1_ClientResponseResult
typealias Payload = Connectrpc_Conformance_V1_ConformancePayload
typealias UnaryRequest = Connectrpc_Conformance_V1_UnaryRequest
typealias UnaryResponse = Connectrpc_Conformance_V1_UnaryResponse
typealias IdempotentUnaryRequest = Connectrpc_Conformance_V1_IdempotentUnaryRequest
typealias IdempotentUnaryResponse = Connectrpc_Conformance_V1_IdempotentUnaryResponse
typealias UnimplementedRequest = Connectrpc_Conformance_V1_UnimplementedRequest
typealias UnimplementedResponse = Connectrpc_Conformance_V1_UnimplementedResponse
typealias ServerStreamRequest = Connectrpc_Conformance_V1_ServerStreamRequest
typealias ServerStreamResponse = Connectrpc_Conformance_V1_ServerStreamResponse
typealias ClientStreamRequest = Connectrpc_Conformance_V1_ClientStreamRequest
typealias ClientStreamResponse = Connectrpc_Conformance_V1_ClientStreamResponse
typealias BidiStreamRequest = Connectrpc_Conformance_V1_BidiStreamRequest
typealias BidiStreamResponse = Connectrpc_Conformance_V1_BidiStreamResponse

/// A response of the conformance service.
protocol ConformanceResponse: SwiftProtobuf.Message {
  /// Empty if the message has none.
  var payload: Payload { get }
}

extension UnaryResponse: ConformanceResponse {}
extension IdempotentUnaryResponse: ConformanceResponse {}
extension ServerStreamResponse: ConformanceResponse {}
extension ClientStreamResponse: ConformanceResponse {}
extension BidiStreamResponse: ConformanceResponse {}
extension UnimplementedResponse: ConformanceResponse {
  var payload: Payload { Payload() }
}

/// The methods of the conformance service.
typealias ConformanceMethods = Connectrpc_Conformance_V1_ConformanceServiceClient.Methods

/// The message types that an `Any` can hold in JSON.
enum MessageRegistry {
  static func registerAll() {
    let types: [any SwiftProtobuf.Message.Type] = [
      UnaryRequest.self, UnaryResponse.self, IdempotentUnaryRequest.self, IdempotentUnaryResponse.self,
      UnimplementedRequest.self, UnimplementedResponse.self, ServerStreamRequest.self,
      ServerStreamResponse.self, ClientStreamRequest.self, ClientStreamResponse.self, BidiStreamRequest.self,
      BidiStreamResponse.self, Payload.self, Payload.RequestInfo.self, Payload.ConnectGetInfo.self,
      Connectrpc_Conformance_V1_Header.self, Connectrpc_Conformance_V1_Error.self,
      Connectrpc_Conformance_V1_UnaryResponseDefinition.self,
      Connectrpc_Conformance_V1_StreamResponseDefinition.self,
      Connectrpc_Conformance_V1_RawHTTPResponse.self,
    ]
    for type in types { Google_Protobuf_Any.register(messageType: type) }
  }
}
