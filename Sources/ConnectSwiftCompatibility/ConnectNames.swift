/// connect-swift's names with its module in front of them: `Connect.Headers`.
///
/// In a file that imports this module, `Connect.Headers` is connect-swift's type, as `Headers` is. So stubs that
/// connect-swift's own generator has written compile, too. A type of this library that has the same name as one of
/// connect-swift's is written with a module selector: `Connect::Headers`.
public enum Connect {
  /// `BidirectionalAsyncStreamInterface` of this module.
  public typealias BidirectionalAsyncStreamInterface = ConnectSwiftCompatibility
    .BidirectionalAsyncStreamInterface
  /// `BidirectionalStreamInterface` of this module.
  public typealias BidirectionalStreamInterface = ConnectSwiftCompatibility.BidirectionalStreamInterface
  /// `Cancelable` of this module.
  public typealias Cancelable = ConnectSwiftCompatibility.Cancelable
  /// `ClientOnlyAsyncStreamInterface` of this module.
  public typealias ClientOnlyAsyncStreamInterface = ConnectSwiftCompatibility.ClientOnlyAsyncStreamInterface
  /// `ClientOnlyStreamInterface` of this module.
  public typealias ClientOnlyStreamInterface = ConnectSwiftCompatibility.ClientOnlyStreamInterface
  /// `Code` of the module `Connect`.
  public typealias Code = Connect::Code
  /// `Codec` of the module `Connect`.
  public typealias Codec = Connect::Codec
  /// `CompressionPool` of the module `Connect`.
  public typealias CompressionPool = Connect::CompressionPool
  /// `ConnectError` of this module.
  public typealias ConnectError = ConnectSwiftCompatibility.ConnectError
  /// `GzipCompressionPool` of the module `Connect`.
  public typealias GzipCompressionPool = Connect::GzipCompressionPool
  /// `HTTPClientInterface` of the module `Connect`.
  public typealias HTTPClientInterface = Connect::HTTPClientInterface
  /// `HTTPMethod` of this module.
  public typealias HTTPMethod = ConnectSwiftCompatibility.HTTPMethod
  /// `HTTPMetrics` of the module `Connect`.
  public typealias HTTPMetrics = Connect::HTTPMetrics
  /// `HTTPRequest` of this module.
  public typealias HTTPRequest = ConnectSwiftCompatibility.HTTPRequest
  /// `HTTPResponse` of this module.
  public typealias HTTPResponse = ConnectSwiftCompatibility.HTTPResponse
  /// `HeaderConstants` of this module.
  public typealias HeaderConstants = ConnectSwiftCompatibility.HeaderConstants
  /// `Headers` of this module.
  public typealias Headers = ConnectSwiftCompatibility.Headers
  /// `IdempotencyLevel` of the module `Connect`.
  public typealias IdempotencyLevel = Connect::IdempotencyLevel
  /// `Interceptor` of this module.
  public typealias Interceptor = ConnectSwiftCompatibility.Interceptor
  /// `InterceptorFactory` of this module.
  public typealias InterceptorFactory = ConnectSwiftCompatibility.InterceptorFactory
  /// `JSONCodec` of the module `Connect`.
  public typealias JSONCodec = Connect::JSONCodec
  /// `MethodSpec` of this module.
  public typealias MethodSpec = ConnectSwiftCompatibility.MethodSpec
  /// `NetworkProtocol` of the module `Connect`.
  public typealias NetworkProtocol = Connect::NetworkProtocol
  /// `ProtoCodec` of the module `Connect`.
  public typealias ProtoCodec = Connect::ProtoCodec
  /// `ProtobufMessage` of this module.
  public typealias ProtobufMessage = ConnectSwiftCompatibility.ProtobufMessage
  /// `ProtocolClient` of the module `Connect`.
  public typealias ProtocolClient = Connect::ProtocolClient
  /// `ProtocolClientConfig` of this module.
  public typealias ProtocolClientConfig = ConnectSwiftCompatibility.ProtocolClientConfig
  /// `ProtocolClientInterface` of this module.
  public typealias ProtocolClientInterface = ConnectSwiftCompatibility.ProtocolClientInterface
  /// `ResponseMessage` of this module.
  public typealias ResponseMessage = ConnectSwiftCompatibility.ResponseMessage
  /// `ServerOnlyAsyncStreamInterface` of this module.
  public typealias ServerOnlyAsyncStreamInterface = ConnectSwiftCompatibility.ServerOnlyAsyncStreamInterface
  /// `ServerOnlyStreamInterface` of this module.
  public typealias ServerOnlyStreamInterface = ConnectSwiftCompatibility.ServerOnlyStreamInterface
  /// `StreamInterceptor` of this module.
  public typealias StreamInterceptor = ConnectSwiftCompatibility.StreamInterceptor
  /// `StreamResult` of this module.
  public typealias StreamResult = ConnectSwiftCompatibility.StreamResult
  /// `Trailers` of this module.
  public typealias Trailers = ConnectSwiftCompatibility.Trailers
  /// `UnaryInterceptor` of this module.
  public typealias UnaryInterceptor = ConnectSwiftCompatibility.UnaryInterceptor
}
