/// Makes an interceptor for one call. It runs in the task that makes the call and sees its task-local values. The
/// interceptor's hooks run on the call's executor.
public typealias InterceptorFactory = @Sendable (ProtocolClientConfig) -> any Interceptor
