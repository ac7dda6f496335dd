/// Makes an interceptor for one call. Runs where the call is made, whose task-local values it sees; all else of the
/// interceptor runs on the call's executor.
public typealias InterceptorFactory = @Sendable (ProtocolClientConfig) -> any Interceptor
