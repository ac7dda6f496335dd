/// connect-swift's names with its module in front of them: `Connect.Headers`.
///
/// In a file that imports this module, `Connect.Headers` is connect-swift's type, as `Headers` is. So stubs that
/// connect-swift's own generator has written compile, too. A type of this library that has the same name as one of
/// connect-swift's is written with a module selector: `Connect::Headers`.
public enum Connect {
  public typealias BidirectionalAsyncStreamInterface = ConnectSwiftCompatibility
    .BidirectionalAsyncStreamInterface
  public typealias BidirectionalStreamInterface = ConnectSwiftCompatibility.BidirectionalStreamInterface
  public typealias Cancelable = ConnectSwiftCompatibility.Cancelable
  public typealias ClientOnlyAsyncStreamInterface = ConnectSwiftCompatibility.ClientOnlyAsyncStreamInterface
  public typealias ClientOnlyStreamInterface = ConnectSwiftCompatibility.ClientOnlyStreamInterface
  public typealias Code = Connect::Code
  public typealias Codec = Connect::Codec
  public typealias CompressionPool = Connect::CompressionPool
  public typealias ConnectError = ConnectSwiftCompatibility.ConnectError
  public typealias GzipCompressionPool = Connect::GzipCompressionPool
  public typealias HTTPClientInterface = Connect::HTTPClientInterface
  public typealias HTTPMethod = ConnectSwiftCompatibility.HTTPMethod
  public typealias HTTPMetrics = Connect::HTTPMetrics
  public typealias HTTPRequest = ConnectSwiftCompatibility.HTTPRequest
  public typealias HTTPResponse = ConnectSwiftCompatibility.HTTPResponse
  public typealias HeaderConstants = ConnectSwiftCompatibility.HeaderConstants
  public typealias Headers = ConnectSwiftCompatibility.Headers
  public typealias IdempotencyLevel = Connect::IdempotencyLevel
  public typealias Interceptor = ConnectSwiftCompatibility.Interceptor
  public typealias InterceptorFactory = ConnectSwiftCompatibility.InterceptorFactory
  public typealias JSONCodec = Connect::JSONCodec
  public typealias MethodSpec = ConnectSwiftCompatibility.MethodSpec
  public typealias NetworkProtocol = Connect::NetworkProtocol
  public typealias ProtoCodec = Connect::ProtoCodec
  public typealias ProtobufMessage = ConnectSwiftCompatibility.ProtobufMessage
  public typealias ProtocolClient = Connect::ProtocolClient
  public typealias ProtocolClientConfig = ConnectSwiftCompatibility.ProtocolClientConfig
  public typealias ProtocolClientInterface = ConnectSwiftCompatibility.ProtocolClientInterface
  public typealias ResponseMessage = ConnectSwiftCompatibility.ResponseMessage
  public typealias ServerOnlyAsyncStreamInterface = ConnectSwiftCompatibility.ServerOnlyAsyncStreamInterface
  public typealias ServerOnlyStreamInterface = ConnectSwiftCompatibility.ServerOnlyStreamInterface
  public typealias StreamInterceptor = ConnectSwiftCompatibility.StreamInterceptor
  public typealias StreamResult = ConnectSwiftCompatibility.StreamResult
  public typealias Trailers = ConnectSwiftCompatibility.Trailers
  public typealias UnaryInterceptor = ConnectSwiftCompatibility.UnaryInterceptor
}
