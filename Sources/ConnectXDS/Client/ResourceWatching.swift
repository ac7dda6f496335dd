internal import Connect

/// What a watch of a resource hears (gRFC A88).
enum ResourceState: Sendable {
  /// The resource, each time that it changes.
  case present(Resource)
  /// It does not exist, or the server does not send it, or it cannot be used and there was none before. The message names it.
  case missing(ConnectError)
}

/// Gives resources to those who watch them. Confined to its executor.
protocol ResourceSource: AnyObject {
  /// Begins to watch a resource. What is known is reported at once, but not within this call.
  ///
  /// - Parameter report: Called on the source's executor. An error that comes while a resource is present (ambient) is not
  ///   reported here: the resource goes on being used.
  func watch(
    _ type: ResourceType,
    _ name: String,
    _ report: @escaping @Sendable (ResourceState) -> Void
  ) -> any ResourceWatch
}

/// A watch of a resource.
protocol ResourceWatch: AnyObject {
  /// Nothing is reported any more. To be called on the source's executor.
  func cancel()
}
