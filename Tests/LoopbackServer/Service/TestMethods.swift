public import Connect

/// The methods of `connect.test.v1.TestService`, for clients that call it.
public enum TestMethods {
  private static let service = "/connect.test.v1.TestService"

  public static let echo = MethodSpec<Connect_Test_V1_EchoRequest, Connect_Test_V1_EchoResponse>(
    path: "\(service)/Echo",
    streamType: .unary
  )
  public static let count = MethodSpec<Connect_Test_V1_CountRequest, Connect_Test_V1_CountResponse>(
    path: "\(service)/Count",
    streamType: .serverStream
  )
  public static let sum = MethodSpec<Connect_Test_V1_SumRequest, Connect_Test_V1_SumResponse>(
    path: "\(service)/Sum",
    streamType: .clientStream
  )
  public static let converse = MethodSpec<Connect_Test_V1_ConverseRequest, Connect_Test_V1_ConverseResponse>(
    path: "\(service)/Converse",
    streamType: .bidirectionalStream
  )
  public static let lookup = MethodSpec<Connect_Test_V1_LookupRequest, Connect_Test_V1_LookupResponse>(
    path: "\(service)/Lookup",
    streamType: .unary,
    idempotencyLevel: .noSideEffects
  )
  public static let flood = MethodSpec<Connect_Test_V1_FloodRequest, Connect_Test_V1_FloodResponse>(
    path: "\(service)/Flood",
    streamType: .serverStream
  )
  public static let unimplemented = MethodSpec<Connect_Test_V1_EchoRequest, Connect_Test_V1_EchoResponse>(
    path: "\(service)/Unimplemented",
    streamType: .unary
  )
}
