// Tests, which cannot import this module, compile the other files of this folder.
#if canImport(PackagePlugin)
import Foundation
import PackagePlugin

extension [any Target] {
  /// The other targets with Swift sources, as ``Generation`` sees them.
  func neighbours(of target: any Target) -> [Generation.Neighbour] {
    let dependencies = Set(
      target.dependencies.compactMap { dependency in
        if case .target(let target) = dependency { target.id } else { nil }
      }
    )
    return self.compactMap { $0 as? SwiftSourceModuleTarget }.filter { $0.id != target.id }.map {
      Generation.Neighbour(
        module: $0.moduleName,
        folder: $0.directoryURL,
        isDependency: dependencies.contains($0.id)
      )
    }
  }
}
#endif
