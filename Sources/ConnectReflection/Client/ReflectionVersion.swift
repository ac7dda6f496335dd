internal import Connect
internal import Synchronization

/// A version of the reflection service. All versions have the same messages.
enum ReflectionVersion: Int, CaseIterable {
  case v1
  case v1alpha

  var method:
    MethodSpec<Grpc_Reflection_V1_ServerReflectionRequest, Grpc_Reflection_V1_ServerReflectionResponse>
  {
    MethodSpec(
      path: "/grpc.reflection.\(self).ServerReflection/ServerReflectionInfo",
      streamType: .bidirectionalStream,
      idempotencyLevel: .noSideEffects
    )
  }
}

/// The version that a server was found to support.
final class KnownVersion: Sendable {
  private let version = Mutex<ReflectionVersion?>(nil)

  var value: ReflectionVersion? { self.version.withLock { $0 } }

  func found(_ version: ReflectionVersion) {
    self.version.withLock { $0 = version }
  }
}
