internal import NIOCore

/// Reads nothing while the program decides about the server. NIOSSL would keep all that an unknown peer sends meanwhile, and
/// it reads even if the channel does not by itself (`autoRead`).
///
/// Confined to the channel's event loop.
final class ReadPause: ChannelOutboundHandler, RemovableChannelHandler {
  typealias OutboundIn = NIOAny

  private var context: ChannelHandlerContext?
  private var isOn = false
  /// Whether somebody wants to read meanwhile.
  private var isReadWanted = false

  func handlerAdded(context: ChannelHandlerContext) { self.context = context }
  func handlerRemoved(context: ChannelHandlerContext) { self.context = nil }

  func read(context: ChannelHandlerContext) {
    if self.isOn {
      self.isReadWanted = true
    } else {
      context.read()
    }
  }

  func begin() { self.isOn = true }

  /// Also takes the handler out of the pipeline.
  func end() {
    self.isOn = false
    guard let context = self.context else { return }
    if self.isReadWanted { context.read() }
    context.pipeline.syncOperations.removeHandler(self, promise: nil)
  }
}
